/* mount_serve.h: the tree as a file system, until it is unmounted. SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNTIME_MOUNT_SERVE_H
#define RUNTIME_MOUNT_SERVE_H

#include "runtime/mount_cache.h"

struct mount_config {
	struct mount_archives *archives;
	struct mount_cache *cache;
	const char *mountpoint;         /* absolute */
	const char *source;             /* what `mount` and `df` show */
	void (*ready)(void *context);   /* called once, when the kernel has accepted the mount */
	void *context;
};

/* BRV_OTHER if this program was built without libfuse3. */
enum brv_status mount_supported(struct error *err);

/* Signals are as mount_serve() wants them: call it before any thread is started, so that these take none of them. */
void mount_block_signals(void);

/* Mounts, and returns when the file system was unmounted, by whomever, or when SIGINT, SIGTERM or SIGHUP asked for it: then BRV_OK. */
enum brv_status mount_serve(const struct mount_config *config, struct error *err);

#endif
