/* temporary.h: names of what is not complete yet, telling what a killed process left from what a living one writes, and removing it.
 *
 * A temporary is called `.NAME.brevis-PID-RANDOM.tmp`, beside the NAME that it will get, and is locked (flock) while its writer lives. That works
 * across containers that share a directory, where process ids mean nothing. SPDX-License-Identifier: Apache-2.0 */
#ifndef COMMON_TEMPORARY_H
#define COMMON_TEMPORARY_H

#include "common/base.h"
#include "common/status.h"

/* A new name for a temporary of `path`; malloc'ed, NULL if there is no memory. */
char *temporary_name(const char *path);

/* Locks the open file or directory that was just created. False: a cleaner was quicker and has removed it; create another. */
bool temporary_lock(int fd);

/* Removes temporaries of the same target, files and directories, whose writers are gone. Never fails: what it cannot remove stays. */
void temporary_remove_stale(const char *path);

/* A file without a name in a directory, for reading and writing; NULL: TMPDIR, or /tmp. -1 and errno. */
int temporary_unnamed(const char *directory);

/* Bytes of "dir/" in front of the last name of a path; 0: it has no directory. */
int directory_length(const char *path);

/* fsync of the directory that the path is in; what fails is ignored: not every file system can. */
void sync_directory_of(const char *path);

/* BRV_MEMORY for ENOMEM, else BRV_IO; "what: text of errno". */
enum brv_status fail_errno(struct error *err, const char *what);

/* For commands, once at their start: on SIGINT, SIGTERM, SIGHUP and SIGPIPE, unless ignored, what is doomed is removed and the process then
 * dies of the signal. */
void temporary_catch_signals(void);

/* Registers a path for that. -1 if there are too many (it is then not removed); doom_take_back(-1) is harmless. */
int doom(const char *path);
void doom_take_back(int slot);

/* Registers a whole list, in the order in which it was made: it is removed backwards. The count may grow meanwhile. One list at a time; NULL: none. */
struct doomed {
	char *const *path;
	volatile size_t count;
};
void doom_list(const struct doomed *list);

#endif
