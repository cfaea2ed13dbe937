/* mount_fuse.c: the tree as a FUSE file system (mount_serve.h).
 *
 * The low-level interface: the kernel's inode numbers are our node numbers plus 1, so nothing is looked up by path, and replies point into the
 * cache. Nothing ever changes: the kernel may keep names, attributes and pages as long as it likes, and serves what was read once without us. It asks
 * for 1 MiB at a time, several requests ahead of the reader, which the threads of libfuse's loop answer side by side.
 * SPDX-License-Identifier: Apache-2.0 */
#define FUSE_USE_VERSION 35
#include "runtime/mount_serve.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/mount_read.h"

#define FOREVER 1e9                     /* seconds */
enum { BLOCK_NBYTES = 4096, MAX_LOOP_THREADS = 10 };

/* An open file: of an archive, a reader; of another file, its descriptor. */
struct open_file {
	struct open_file *prev, *next;
	int fd;                         /* -1: an archive */
	struct mount_reader reader;
};

/* What requests come with. The kernel releases no files of a mount that ended while they were open, so there is a list of them. */
struct server {
	const struct mount_config *config;
	pthread_mutex_t lock;           /* of the list */
	struct open_file files;         /* before the first and behind the last */
};

static struct server *server_of(fuse_req_t request) { return fuse_req_userdata(request); }
static const struct mount_config *config_of(fuse_req_t request) { return server_of(request)->config; }
static struct mount_tree *tree_of(fuse_req_t request) { return config_of(request)->archives->tree; }

static const struct mount_node *node_of(fuse_req_t request, fuse_ino_t inode)
{
	const struct mount_tree *tree = tree_of(request);
	assert(inode >= 1 && inode <= tree->nnodes); /* the kernel knows no others */
	return &tree->node[inode - 1];
}

static struct stat attributes_of(const struct mount_tree *tree, const struct mount_node *node)
{
	bool directory = node->kind == MANIFEST_DIRECTORY;
	return (struct stat){
		.st_ino = (ino_t)(node - tree->node) + 1,
		.st_mode = directory ? S_IFDIR | 0555 : S_IFREG | 0444,
		.st_nlink = directory ? 2 : 1,
		.st_uid = node->from.st_uid,
		.st_gid = node->from.st_gid,
		.st_size = (off_t)node->nbytes,
		.st_blocks = (blkcnt_t)ceil_div(node->nbytes, 512),
		.st_blksize = directory ? BLOCK_NBYTES : MOUNT_READ_NBYTES,
		.st_atim = node->from.st_mtim,
		.st_mtim = node->from.st_mtim,
		.st_ctim = node->from.st_mtim,
	};
}

static void do_init(void *userdata, struct fuse_conn_info *conn)
{
	const struct mount_config *config = ((struct server *)userdata)->config;
	conn->max_read = MOUNT_READ_NBYTES;
	conn->max_readahead = MOUNT_READ_NBYTES;
	conn->want |= conn->capable & (FUSE_CAP_ASYNC_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_PARALLEL_DIROPS);
	config->ready(config->context);
}

static void do_lookup(fuse_req_t request, fuse_ino_t parent, const char *name)
{
	const struct mount_tree *tree = tree_of(request);
	const struct mount_node *node = mount_tree_find(tree, node_of(request, parent), name);
	struct fuse_entry_param entry = { .attr_timeout = FOREVER, .entry_timeout = FOREVER };
	if (node) {
		entry.attr = attributes_of(tree, node);
		entry.ino = entry.attr.st_ino;
	}
	fuse_reply_entry(request, &entry); /* inode 0: there is none, and never will be */
}

static void do_getattr(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
	(void)info;
	const struct stat attributes = attributes_of(tree_of(request), node_of(request, inode));
	fuse_reply_attr(request, &attributes, FOREVER);
}

static int errno_of(enum brv_status status) { return status == BRV_MEMORY || status == BRV_LIMIT ? ENOMEM : EIO; }

static void add_file(struct server *server, struct open_file *file)
{
	pthread_mutex_lock(&server->lock);
	file->prev = &server->files, file->next = server->files.next;
	file->next->prev = file->prev->next = file;
	pthread_mutex_unlock(&server->lock);
}

static void close_file(struct server *server, struct open_file *file)
{
	pthread_mutex_lock(&server->lock);
	file->prev->next = file->next, file->next->prev = file->prev;
	pthread_mutex_unlock(&server->lock);
	if (file->fd >= 0)
		close(file->fd);
	pthread_mutex_destroy(&file->reader.lock);
	free(file);
}

static void do_open(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
	const struct mount_node *node = node_of(request, inode);
	struct open_file *file = malloc(sizeof *file);
	if (!file || (info->flags & O_ACCMODE) != O_RDONLY) {
		free(file);
		fuse_reply_err(request, file ? EROFS : ENOMEM);
		return;
	}
	*file = (struct open_file){ .fd = -1, .reader = { .node = (uint32_t)inode - 1, .next = UINT64_MAX } };
	enum brv_status status = node->kind == MANIFEST_FILE ? mount_tree_open(tree_of(request), node, &file->fd, NULL) : BRV_OK;
	if (status != BRV_OK) {
		free(file);
		fuse_reply_err(request, errno_of(status));
		return;
	}
	pthread_mutex_init(&file->reader.lock, NULL);
	add_file(server_of(request), file);
	info->fh = (uintptr_t)file;
	info->keep_cache = 1;
	fuse_reply_open(request, info);
}

static void do_release(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
	(void)inode;
	close_file(server_of(request), (struct open_file *)(uintptr_t)info->fh);
	fuse_reply_err(request, 0);
}

static void read_archive(fuse_req_t request, struct open_file *file, uint64_t offset, size_t nbytes)
{
	const struct mount_config *config = config_of(request);
	struct mount_reply reply;
	enum brv_status status = mount_read(config->cache, config->archives, &file->reader, offset, nbytes, &reply, NULL);
	if (status == BRV_OK)
		fuse_reply_iov(request, reply.part, (int)reply.nparts);
	else
		fuse_reply_err(request, errno_of(status));
	mount_read_end(config->cache, config->archives, &reply);
}

static void do_read(fuse_req_t request, fuse_ino_t inode, size_t nbytes, off_t offset, struct fuse_file_info *info)
{
	struct open_file *file = (struct open_file *)(uintptr_t)info->fh;
	(void)inode;
	if (file->fd < 0) {
		read_archive(request, file, (uint64_t)offset, MIN(nbytes, (size_t)MOUNT_READ_NBYTES));
		return;
	}
	struct fuse_bufvec from = FUSE_BUFVEC_INIT(nbytes);
	from.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK | FUSE_BUF_FD_RETRY;
	from.buf[0].fd = file->fd;
	from.buf[0].pos = offset;
	fuse_reply_data(request, &from, FUSE_BUF_SPLICE_MOVE);
}

/* Entry k of a directory: itself, the one above, its children. */
static size_t add_entry(fuse_req_t request, const struct mount_node *directory, uint64_t k, char *at, size_t left)
{
	const struct mount_tree *tree = tree_of(request);
	const struct mount_node *node = k == 0 ? directory : k == 1 ? &tree->node[directory->parent] : &tree->node[directory->first + k - 2];
	const struct stat attributes = attributes_of(tree, node);
	return fuse_add_direntry(request, at, left, k == 0 ? "." : k == 1 ? ".." : node->name, &attributes, (off_t)(k + 1));
}

static void do_readdir(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset, struct fuse_file_info *info)
{
	const struct mount_node *directory = node_of(request, inode);
	char *entries = malloc(size);
	size_t used = 0;
	(void)info;
	if (!entries) {
		fuse_reply_err(request, ENOMEM);
		return;
	}
	for (uint64_t k = (uint64_t)offset; k < 2 + (uint64_t)directory->count; k++) {
		size_t nbytes = add_entry(request, directory, k, entries + used, size - used);
		if (nbytes > size - used)
			break;
		used += nbytes;
	}
	fuse_reply_buf(request, entries, used);
	free(entries);
}

static void do_statfs(fuse_req_t request, fuse_ino_t inode)
{
	const struct mount_tree *tree = tree_of(request);
	struct statvfs all = { .f_bsize = BLOCK_NBYTES, .f_frsize = BLOCK_NBYTES, .f_files = tree->nnodes, .f_namemax = 255, .f_flag = ST_RDONLY };
	(void)inode;
	for (uint32_t i = 0; i < tree->nnodes; i++)
		all.f_blocks += ceil_div(tree->node[i].nbytes, BLOCK_NBYTES);
	fuse_reply_statfs(request, &all);
}

static const struct fuse_lowlevel_ops operations = {
	.init = do_init, .lookup = do_lookup, .getattr = do_getattr, .open = do_open, .release = do_release, .read = do_read,
	.readdir = do_readdir, .statfs = do_statfs,
};

/* What libfuse has to say goes into the error that is returned, and not to stderr beside it. */
static char complaint[200];

static void keep_complaint(enum fuse_log_level level, const char *format, va_list arguments)
{
	if (level <= FUSE_LOG_ERR)
		vsnprintf(complaint, sizeof complaint, format, arguments);
}

static enum brv_status fail_fuse(const char *what, struct error *err)
{
	complaint[strcspn(complaint, "\n")] = 0;
	return fail(err, BRV_IO, "%s%s%s", what, *complaint ? ": " : "", complaint);
}

enum brv_status mount_supported(struct error *err)
{
	(void)err;
	return BRV_OK;
}

static const int signals[] = { SIGINT, SIGTERM, SIGHUP };

void mount_block_signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		sigaddset(&set, signals[i]);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* libfuse takes the signals that have the default action; this thread alone gets them. */
static void take_signals(struct fuse_session *session)
{
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		struct sigaction action;
		sigaddset(&set, signals[i]);
		if (sigaction(signals[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			signal(signals[i], SIG_DFL);
	}
	signal(SIGPIPE, SIG_IGN);
	fuse_set_signal_handlers(session);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static enum brv_status run_session(struct fuse_session *session, const struct mount_config *config, struct error *err)
{
	struct fuse_loop_config loop = { .max_idle_threads = MAX_LOOP_THREADS };
	if (fuse_session_mount(session, config->mountpoint) != 0)
		return fail_fuse("cannot mount", err);
	take_signals(session);
	int result = fuse_session_loop_mt(session, &loop);
	fuse_remove_signal_handlers(session);
	fuse_session_unmount(session);
	return result >= 0 ? BRV_OK : fail(err, BRV_IO, "the mount ended: %s", strerror(-result));
}

static enum brv_status add_options(struct fuse_args *arguments, const struct mount_config *config, struct error *err)
{
	char *options = NULL, *named = NULL;
	bool ok = asprintf(&options, "ro,nosuid,nodev,default_permissions,subtype=brevis,max_read=%d", MOUNT_READ_NBYTES) >= 0 &&
		  asprintf(&named, "fsname=%s", config->source) >= 0 && fuse_opt_add_opt_escaped(&options, named) == 0 &&
		  fuse_opt_add_arg(arguments, "brevis") == 0 && fuse_opt_add_arg(arguments, "-o") == 0 && fuse_opt_add_arg(arguments, options) == 0;
	free(named);
	free(options);
	return ok ? BRV_OK : fail(err, BRV_MEMORY, "out of memory");
}

enum brv_status mount_serve(const struct mount_config *config, struct error *err)
{
	struct fuse_args arguments = FUSE_ARGS_INIT(0, NULL);
	struct server server = { .config = config, .files = { .prev = &server.files, .next = &server.files } };
	pthread_mutex_init(&server.lock, NULL);
	fuse_set_log_func(keep_complaint);
	enum brv_status status = add_options(&arguments, config, err);
	if (status == BRV_OK) {
		struct fuse_session *session = fuse_session_new(&arguments, &operations, sizeof operations, &server);
		status = session ? run_session(session, config, err) : fail_fuse("libfuse refuses the mount", err);
		if (session)
			fuse_session_destroy(session);
	}
	while (server.files.next != &server.files)
		close_file(&server, server.files.next);
	pthread_mutex_destroy(&server.lock);
	fuse_opt_free_args(&arguments);
	return status;
}
