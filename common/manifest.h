/* manifest.h: what a compressed checkpoint directory has to hold: a text file in it, brevis.manifest, written before anything else.
 *
 * docs/FORMAT.md, section 10, defines the file. Each original file X is there as the archive X.brv (X ends in .safetensors) or as itself.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COMMON_MANIFEST_H
#define COMMON_MANIFEST_H

#include "common/archive.h"

#define MANIFEST_NAME "brevis.manifest"
#define MANIFEST_SUFFIX ".brv"          /* of an archive, behind the original's name */
#define ORIGINAL_SUFFIX ".safetensors"  /* of what becomes one */

enum manifest_kind { MANIFEST_ARCHIVE, MANIFEST_FILE, MANIFEST_DIRECTORY };

struct manifest_entry {
	char *path;                     /* the original's, relative, with slashes; no "." or ".." in it; owned */
	char *stored;                   /* where its bytes are, also relative to the directory; owned */
	enum manifest_kind kind;
	uint64_t nbytes;                /* of the original; UINT64_MAX: not known (a directory without a manifest) */
	uint64_t sum;                   /* XXH3-64 of a MANIFEST_FILE */
	bool has_sum;
};

struct manifest {
	struct manifest_entry *entry;   /* by the bytes of their paths; a directory comes before what is in it */
	size_t count, capacity;
};

/* Adds an entry with a copy of path; stored is NULL for the usual place: path, with .brv behind it for an archive. NULL: no memory. */
struct manifest_entry *manifest_add(struct manifest *manifest, const char *path, const char *stored, enum manifest_kind kind,
				    uint64_t nbytes);

/* The file's text. Entries must be sorted and their paths sound, as those of walk_directory() are. */
void manifest_print(const struct manifest *manifest, struct buffer *out);

/* Reads a text; everything that docs/FORMAT.md asks is checked, so no path leads out of the directory. BRV_DAMAGED, BRV_VERSION, BRV_MEMORY; on failure
 * there is nothing to free. */
enum brv_status manifest_parse(const void *text, size_t nbytes, struct manifest *out, struct error *err);

/* What the directory holds: by its manifest, or, if it has none, by what is there: X.brv is an archive of X (with .safetensors behind it if X
 * does not end so), all else a file. *has_manifest may be NULL. Whether the files are really there, shows when they are opened. */
enum brv_status manifest_of_directory(const char *directory, struct manifest *out, bool *has_manifest, struct error *err);
/* What an archive stands for, by its name: "x.safetensors.brv", "x.brv" and "x" -> "x.safetensors"; malloc'ed, NULL if there is no memory. */
char *manifest_original_name(const char *archive);
void manifest_free(struct manifest *manifest);

#endif
