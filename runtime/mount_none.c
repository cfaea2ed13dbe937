/* mount_none.c: instead of mount_fuse.c where there is no libfuse3. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/mount_serve.h"

enum brv_status mount_supported(struct error *err)
{
	return fail(err, BRV_OTHER, "this brevis was built without libfuse3, so it cannot mount");
}

void mount_block_signals(void) {}

enum brv_status mount_serve(const struct mount_config *config, struct error *err)
{
	(void)config;
	return mount_supported(err);
}
