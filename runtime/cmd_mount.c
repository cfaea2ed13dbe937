/* cmd_mount.c: `brevis mount`: the original files as a read-only file system.
 *
 * In the background, all work is the child's, from opening the archive on: the parent waits until the child says that the mount works, or
 * has said why not and ended. So whoever ran the command finds the files there when it returns, and an exit code that tells the truth.
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include "common/cpus.h"
#include "common/text.h"
#include "runtime/cli.h"
#include "runtime/mount_serve.h"

#define DEFAULT_CACHE_NBYTES (256ull << 20)

struct background {
	bool wanted;
	int ready_fd;                   /* a byte in it: the mount works */
};

static bool to_syslog;

/* mount_damage_fn */
static void report_damage(const struct mount_node *node, const char *text)
{
	char name[512], reason[512];
	text_safe((const uint8_t *)node->source, strlen(node->source), name, sizeof name);
	text_safe((const uint8_t *)text, strlen(text), reason, sizeof reason);
	if (to_syslog)
		syslog(LOG_ERR, "%s: %s; reads of what is damaged fail", name, reason);
	else
		fprintf(stderr, "brevis: %s: %s; reads of what is damaged fail\n", name, reason);
}

/* In the parent: the child's exit code, once it has ended, or 0 once it is ready. */
static int await_ready(pid_t child, int fd)
{
	char byte;
	int how;
	ssize_t n;
	while ((n = read(fd, &byte, 1)) < 0 && errno == EINTR)
		;
	if (n == 1)
		return 0;
	while (waitpid(child, &how, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(how) ? WEXITSTATUS(how) : status_exit_code(BRV_OTHER);
}

/* Goes on in a child of its own session; the parent does not return. */
static enum brv_status start_background(struct background *background, struct error *err)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC) != 0)
		return fail(err, BRV_IO, "no pipe: %s", strerror(errno));
	pid_t child = fork();
	if (child < 0) {
		close(fds[0]);
		close(fds[1]);
		return fail(err, BRV_MEMORY, "cannot start a process: %s", strerror(errno));
	}
	if (child > 0) {
		close(fds[1]);
		exit(await_ready(child, fds[0]));
	}
	close(fds[0]);
	setsid();
	background->ready_fd = fds[1];
	return BRV_OK;
}

/* mount_config.ready */
static void leave_terminal(void *context)
{
	struct background *background = context;
	if (!background->wanted)
		return;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
	if (chdir("/") != 0) /* so that nothing else is kept busy */
		syslog(LOG_WARNING, "cannot change to /: %s", strerror(errno));
	to_syslog = true;
	ssize_t told = write(background->ready_fd, "", 1);
	(void)told;
	close(background->ready_fd);
}

static enum brv_status check_mountpoint(struct cli *cli, const char *path, char **absolute)
{
	struct stat found;
	cli->about = path;
	if (stat(path, &found) == 0 && !S_ISDIR(found.st_mode))
		return fail(&cli->err, BRV_USAGE, "expected a directory to mount on");
	*absolute = realpath(path, NULL);
	return *absolute ? BRV_OK : fail(&cli->err, BRV_IO, "cannot be mounted on: %s", strerror(errno));
}

static enum brv_status serve(struct cli *cli, struct mount_archives *archives, uint64_t piece_limit, const char *mountpoint,
			     struct background *background)
{
	struct mount_cache *cache;
	struct mount_cache_options options = {
		.archives = archives, .piece_limit = piece_limit, .nbytes = cli->memory_limit ? cli->memory_limit : DEFAULT_CACHE_NBYTES,
		.damage = report_damage,
	};
	TRY(cpus_threads(cli->threads, &options.threads, &cli->err));
	enum brv_status status = alloc_mount_cache(&options, &cache, &cli->err);
	if (status == BRV_OK) {
		const struct mount_config config = {
			.archives = archives, .cache = cache, .mountpoint = mountpoint, .source = cli->file, .ready = leave_terminal,
			.context = background,
		};
		cli->about = mountpoint;
		status = mount_serve(&config, &cli->err);
	}
	free_mount_cache(cache);
	return status;
}

/* Names in errors are of the archive or, in a directory, of a file in it. */
static enum brv_status open_and_serve(struct cli *cli, const char *mountpoint, struct background *background)
{
	struct mount_tree tree;
	struct mount_archives archives = { 0 };
	uint64_t piece_limit;
	const char *about = NULL;
	char *shown = cli_original_name(cli->file);
	if (!shown)
		return fail(&cli->err, BRV_MEMORY, "out of memory");
	enum brv_status status = mount_tree_make(&tree, cli->file, shown, &about, &cli->err);
	if (status == BRV_OK)
		status = mount_archives_make(&archives, &tree, &piece_limit, &about, &cli->err);
	if (status == BRV_OK)
		status = serve(cli, &archives, piece_limit, mountpoint, background);
	if (about) {
		cli->owned = strdup(about);
		cli->about = cli->owned ? cli->owned : cli->file;
	}
	free_mount_archives(&archives);
	free_mount_tree(&tree);
	free(shown);
	return status;
}

enum brv_status cmd_mount(struct cli *cli, int nargs, char **args)
{
	struct background background = { .wanted = !cli->foreground, .ready_fd = -1 };
	char *mountpoint = NULL;
	(void)nargs;
	TRY(mount_supported(&cli->err));
	if (strcmp(args[0], "-") == 0)
		return fail(&cli->err, BRV_USAGE, "a pipe cannot be mounted: reads may be anywhere");
	TRY(check_mountpoint(cli, args[1], &mountpoint));
	cli->file = cli->about = args[0];
	mount_block_signals();
	enum brv_status status = background.wanted ? start_background(&background, &cli->err) : BRV_OK;
	if (status == BRV_OK)
		status = open_and_serve(cli, mountpoint, &background);
	if (cli->about == mountpoint)
		cli->about = args[1];
	free(mountpoint);
	return status;
}
