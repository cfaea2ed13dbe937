/* mount_copy.c: the yardstick of `brevis mount`: a file system of one file that only copies bytes it has in memory.
 *
 *     mount_copy FILE MOUNTPOINT        in the foreground, until it is unmounted
 *
 * The same libfuse3 interface, loop, request size and caching by the kernel; FILE is read before the mount. What `brevis mount` is slower than
 * this, decoding costs (perf/mount). SPDX-License-Identifier: Apache-2.0 */
#define FUSE_USE_VERSION 35
#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base.h"

enum { READ_NBYTES = 1 << 20, FILE_INODE = 2 };
#define FOREVER 1e9

static struct {
	uint8_t *bytes;
	size_t nbytes;
	const char *name;
} file;

static struct stat attributes(fuse_ino_t inode)
{
	return (struct stat){
		.st_ino = inode,
		.st_mode = inode == FILE_INODE ? S_IFREG | 0444 : S_IFDIR | 0555,
		.st_nlink = 1,
		.st_size = inode == FILE_INODE ? (off_t)file.nbytes : 0,
		.st_blksize = READ_NBYTES,
	};
}

static void do_init(void *userdata, struct fuse_conn_info *conn)
{
	(void)userdata;
	conn->max_read = conn->max_readahead = READ_NBYTES;
	conn->want |= conn->capable & (FUSE_CAP_ASYNC_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_PARALLEL_DIROPS);
}

static void do_lookup(fuse_req_t request, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param entry = { .attr_timeout = FOREVER, .entry_timeout = FOREVER };
	(void)parent;
	if (strcmp(name, file.name) == 0) {
		entry.ino = FILE_INODE;
		entry.attr = attributes(FILE_INODE);
	}
	fuse_reply_entry(request, &entry);
}

static void do_getattr(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
	const struct stat found = attributes(inode);
	(void)info;
	fuse_reply_attr(request, &found, FOREVER);
}

static void do_open(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
	(void)inode;
	info->keep_cache = 1;
	fuse_reply_open(request, info);
}

static void do_read(fuse_req_t request, fuse_ino_t inode, size_t nbytes, off_t offset, struct fuse_file_info *info)
{
	size_t at = MIN((size_t)offset, file.nbytes);
	const struct iovec part = { file.bytes + at, MIN(nbytes, file.nbytes - at) };
	(void)inode;
	(void)info;
	fuse_reply_iov(request, &part, 1);
}

static const struct fuse_lowlevel_ops operations = {
	.init = do_init, .lookup = do_lookup, .getattr = do_getattr, .open = do_open, .read = do_read,
};

static bool load(const char *path)
{
	struct stat found;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &found) != 0)
		return false;
	const char *slash = strrchr(path, '/');
	file.name = slash ? slash + 1 : path;
	file.nbytes = (size_t)found.st_size;
	file.bytes = mmap(NULL, file.nbytes + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (file.bytes == MAP_FAILED)
		return false;
	madvise(file.bytes, file.nbytes, MADV_HUGEPAGE);
	for (size_t at = 0; at < file.nbytes;) {
		ssize_t n = read(fd, file.bytes + at, file.nbytes - at);
		if (n <= 0)
			return false;
		at += (size_t)n;
	}
	return close(fd) == 0;
}

int main(int argc, char **argv)
{
	char *arguments[] = { argv[0], "-o", "ro,default_permissions,subtype=mount_copy,max_read=1048576", NULL };
	struct fuse_args args = FUSE_ARGS_INIT(3, arguments);
	struct fuse_loop_config loop = { .max_idle_threads = 10 };
	if (argc != 3 || !load(argv[1])) {
		fprintf(stderr, "usage: mount_copy FILE MOUNTPOINT: %s\n", strerror(errno));
		return 2;
	}
	struct fuse_session *session = fuse_session_new(&args, &operations, sizeof operations, NULL);
	if (!session || fuse_set_signal_handlers(session) != 0 || fuse_session_mount(session, argv[2]) != 0)
		return 5;
	int result = fuse_session_loop_mt(session, &loop);
	fuse_session_unmount(session);
	fuse_remove_signal_handlers(session);
	fuse_session_destroy(session);
	fuse_opt_free_args(&args);
	return result < 0;
}
