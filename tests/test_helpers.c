/* test_helpers.c: what the commands share: output files, numbers and names as text, threads. SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cpus.h"
#include "common/outfile.h"
#include "common/temporary.h"
#include "common/text.h"

/* A directory of its own for files. */
static char *make_directory(char *path)
{
	strcpy(path, "/tmp/brevis-test-XXXXXX");
	return mkdtemp(path);
}

static bool exists(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0;
}

Test(outfile, appears_whole)
{
	char dir[64], path[96], text[64] = "";
	struct outfile out;
	struct error err;
	make_directory(dir);
	snprintf(path, sizeof path, "%s/out", dir);
	cr_assert_eq(outfile_open(&out, path, false, -1, &err), BRV_OK, "%s", err.text);
	cr_expect_eq(outfile_reserve(&out, 1 << 20, &err), BRV_OK);
	cr_expect_eq(outfile_write(&out, "world", 5, 6, &err), BRV_OK);
	cr_expect_eq(outfile_write(&out, "hello ", 6, 0, &err), BRV_OK);
	cr_expect_eq(outfile_read(&out, text, 11, 0, &err), BRV_OK);
	cr_expect_str_eq(text, "hello world");
	cr_expect_not(exists(path));
	cr_expect_eq(outfile_commit(&out, 11, &err), BRV_OK, "%s", err.text);
	cr_expect(exists(path));
	cr_expect_eq(outfile_open(&out, path, false, -1, &err), BRV_USAGE);
	int fd = open(path, O_RDONLY);
	cr_expect_eq(outfile_open(&out, path, true, fd, &err), BRV_USAGE);
	cr_expect(strstr(err.text, "same file"), "%s", err.text);
	close(fd);
	cr_expect_eq(outfile_open(&out, dir, true, -1, &err), BRV_USAGE);
	cr_assert_eq(outfile_open(&out, path, true, -1, &err), BRV_OK);
	cr_expect_eq(outfile_write(&out, "x", 1, 0, &err), BRV_OK);
	outfile_abandon(&out);
	outfile_abandon(&out);
	struct stat st;
	cr_expect(stat(path, &st) == 0 && st.st_size == 11);
	unlink(path);
	cr_expect_eq(rmdir(dir), 0, "something was left");
}

Test(outfile, target_that_appears_meanwhile)
{
	char dir[64], path[96];
	struct outfile out;
	struct error err;
	make_directory(dir);
	snprintf(path, sizeof path, "%s/out", dir);
	cr_assert_eq(outfile_open(&out, path, false, -1, &err), BRV_OK);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	cr_expect_eq(outfile_commit(&out, 0, &err), BRV_USAGE);
	unlink(path);
	cr_expect_eq(rmdir(dir), 0, "something was left");
}

static unsigned count_entries(const char *dir)
{
	char command[128];
	unsigned n = 0;
	snprintf(command, sizeof command, "ls -A %s | wc -l", dir);
	FILE *pipe_ = popen(command, "r");
	cr_assert_eq(fscanf(pipe_, "%u", &n), 1);
	pclose(pipe_);
	return n;
}

/* What a killed process left is removed by the next run for the same target; what a living one writes is not. */
Test(outfile, stale_temporaries)
{
	char dir[64], path[96], other[96];
	struct outfile out, living;
	struct error err;
	make_directory(dir);
	snprintf(path, sizeof path, "%s/out", dir);
	snprintf(other, sizeof other, "%s/out2", dir);
	pid_t child = fork();
	if (child == 0) {
		outfile_open(&out, path, false, -1, &err);
		raise(SIGKILL);
	}
	waitpid(child, NULL, 0);
	cr_expect_eq(count_entries(dir), 1);
	cr_assert_eq(outfile_open(&out, other, false, -1, &err), BRV_OK);
	outfile_abandon(&out);
	cr_expect_eq(count_entries(dir), 1, "another target's was removed");
	cr_assert_eq(outfile_open(&living, path, false, -1, &err), BRV_OK);
	cr_expect_eq(count_entries(dir), 1);
	cr_assert_eq(outfile_open(&out, path, false, -1, &err), BRV_OK);
	cr_expect_eq(count_entries(dir), 2);
	outfile_abandon(&out);
	cr_expect_eq(outfile_commit(&living, 0, &err), BRV_OK);
	unlink(path);
	cr_expect_eq(rmdir(dir), 0, "something was left");
}

Test(outfile, signals)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
	char dir[64], path[96];
	make_directory(dir);
	snprintf(path, sizeof path, "%s/out", dir);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		int state;
		pid_t child = fork();
		if (child == 0) {
			struct outfile out;
			struct error err;
			signal(numbers[i], SIG_DFL);
			temporary_catch_signals();
			outfile_open(&out, path, false, -1, &err);
			raise(numbers[i]);
			_exit(0);
		}
		waitpid(child, &state, 0);
		cr_expect(WIFSIGNALED(state) && WTERMSIG(state) == numbers[i], "signal %d", numbers[i]);
		cr_expect_eq(count_entries(dir), 0, "signal %d", numbers[i]);
	}
	rmdir(dir);
}

Test(outfile, full_disk_and_long_names)
{
	struct outfile out;
	struct error err;
	char dir[64], path[400];
	cr_assert_eq(outfile_open(&out, "/dev/full", false, -1, &err), BRV_OK);
	cr_expect(out.sequential);
	cr_expect_eq(outfile_write(&out, "x", 1, 0, &err), BRV_IO);
	outfile_abandon(&out);
	cr_expect_eq(outfile_open(&out, "/nowhere/at/all", false, -1, &err), BRV_IO);
	make_directory(dir);
	snprintf(path, sizeof path, "%s/%0255d", dir, 1);
	cr_assert_eq(outfile_open(&out, path, false, -1, &err), BRV_OK, "%s", err.text);
	cr_expect_eq(outfile_commit(&out, 0, &err), BRV_OK, "%s", err.text);
	unlink(path);
	cr_expect_eq(rmdir(dir), 0);
}

Test(text, numbers_and_sizes)
{
	static const struct {
		const char *text;
		bool ok;
		uint64_t value;
	} sizes[] = {
		{ "0", true, 0 },
		{ "64M", true, 64 << 20 },
		{ "2G", true, 2ull << 30 },
		{ "1k", true, 1024 },
		{ "1KiB", true, 1024 },
		{ "3MB", true, 3 << 20 },
		{ "7T", true, 7ull << 40 },
		{ "5B", true, 5 },
		{ "", false, 0 },
		{ "M", false, 0 },
		{ "1X", false, 0 },
		{ "-1", false, 0 },
		{ "1 ", false, 0 },
		{ "9223372036854775807", true, INT64_MAX },
		{ "9223372036854775808", false, 0 },
		{ "8388608T", false, 0 },
		{ "99999999999999999999", false, 0 },
		{ "1i", false, 0 },
	};
	uint64_t value;
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		bool ok = text_size(sizes[i].text, &value);
		cr_expect(ok == sizes[i].ok && (!ok || value == sizes[i].value), "%s", sizes[i].text);
	}
	cr_expect(text_number("18446744073709551615", 0, UINT64_MAX, &value) && value == UINT64_MAX);
	cr_expect_not(text_number("18446744073709551616", 0, UINT64_MAX, &value));
	cr_expect_not(text_number("3", 4, 5, &value));
	cr_expect_not(text_number("+4", 4, 5, &value));
}

Test(text, safe)
{
	char out[64];
	cr_expect_eq(text_safe((const uint8_t *)"a\n\0\x1b\\\xff\xc3\xa9", 8, out, sizeof out), 1 + 4 + 4 + 4 + 2 + 4 + 2);
	cr_expect_str_eq(out, "a\\x0a\\x00\\x1b\\\\\\xff\xc3\xa9");
	cr_expect_eq(text_safe((const uint8_t *)"a\nb", 3, out, 5), 6);
	cr_expect_str_eq(out, "a");
	cr_expect_eq(text_safe((const uint8_t *)"", 0, out, 5), 0);
	cr_expect_str_eq(out, "");
	char size[16];
	cr_expect_str_eq(text_nbytes(1536, size), "1.5 KiB");
	cr_expect_str_eq(text_nbytes(UINT64_MAX, size), "16.0 EiB");
}

Test(cpus, threads)
{
	struct error err;
	unsigned threads;
	struct cpus cpus;
	cpus_detect(&cpus);
	cr_expect(cpus.affinity >= 1 && cpus.usable >= 1 && cpus.usable <= cpus.affinity);
	unsetenv("BREVIS_THREADS");
	cr_expect(cpus_threads(0, &threads, &err) == BRV_OK && threads == cpus.usable);
	cr_expect(cpus_threads(7, &threads, &err) == BRV_OK && threads == 7);
	setenv("BREVIS_THREADS", "3", 1);
	cr_expect(cpus_threads(0, &threads, &err) == BRV_OK && threads == 3);
	setenv("BREVIS_THREADS", "3x", 1);
	cr_expect_eq(cpus_threads(0, &threads, &err), BRV_USAGE);
	setenv("BREVIS_THREADS", "0", 1);
	cr_expect_eq(cpus_threads(0, &threads, &err), BRV_USAGE);
}
