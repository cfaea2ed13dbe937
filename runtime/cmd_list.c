/* cmd_list.c: `brevis list`: the tensors of an archive, for people or as JSON. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "common/text.h"
#include "runtime/cli_dir.h"

enum { NAME_COLUMN = 48, SHAPE_COLUMN = 24, PROGRAM_NBYTES = 1024, CELL_NBYTES = 256 };

static double ratio(uint64_t part, uint64_t whole) { return whole ? (double)part / (double)whole : 1.0; }

static void shape_text(const brv_tensor *tensor, char text[CELL_NBYTES])
{
	struct text_out out = { text, CELL_NBYTES, 0 };
	text_add(&out, "[");
	for (size_t i = 0; i < MIN(tensor->ndim, 10); i++)
		text_add(&out, "%s%llu", i ? "," : "", (unsigned long long)tensor->shape[i]);
	text_add(&out, "%s]", tensor->ndim > 10 ? ",..." : "");
}

/* Widths of the name and shape columns: of the longest, within bounds. */
static void measure(const brv_archive *archive, uint64_t count, int *name_width, int *shape_width)
{
	char text[CELL_NBYTES];
	brv_tensor tensor;
	*name_width = 4;
	*shape_width = 5;
	for (uint64_t i = 0; i < count && brv_get_tensor(archive, i, &tensor, NULL) == BRV_SUCCESS; i++) {
		size_t length = text_safe((const uint8_t *)tensor.name, tensor.name_nbytes, NULL, 0);
		*name_width = MAX(*name_width, (int)MIN(length, (size_t)NAME_COLUMN));
		shape_text(&tensor, text);
		*shape_width = MAX(*shape_width, (int)MIN(strlen(text), (size_t)SHAPE_COLUMN));
	}
}

static void put_padded(const void *bytes, size_t nbytes, int width)
{
	size_t length = text_safe(bytes, nbytes, NULL, 0);
	text_put_safe(stdout, bytes, nbytes);
	printf("%*s", length < (size_t)width ? width - (int)length : 0, "");
}

static void print_table(const brv_archive *archive, const brv_info *info)
{
	char text[CELL_NBYTES], program[PROGRAM_NBYTES];
	brv_tensor tensor;
	int name_width, shape_width;
	measure(archive, info->tensor_count, &name_width, &shape_width);
	printf("%-*s  %-8s  %-*s  %14s  %14s  %6s  %s\n", name_width, "name", "dtype", shape_width, "shape", "bytes", "archive", "ratio",
	       "program");
	for (uint64_t i = 0; i < info->tensor_count && brv_get_tensor(archive, i, &tensor, NULL) == BRV_SUCCESS; i++) {
		put_padded(tensor.name, tensor.name_nbytes, name_width);
		printf("  ");
		put_padded(tensor.dtype, strlen(tensor.dtype), 8);
		shape_text(&tensor, text);
		brv_describe(archive, i, program, sizeof program);
		printf("  %-*s  %14llu  %14llu  %6.4f  %s\n", shape_width, text, (unsigned long long)tensor.data_nbytes,
		       (unsigned long long)tensor.archive_nbytes, ratio(tensor.archive_nbytes, tensor.data_nbytes), program);
	}
	printf("%llu tensors, %llu bytes in %llu: %.4f\n", (unsigned long long)info->tensor_count, (unsigned long long)info->file_nbytes,
	       (unsigned long long)info->archive_nbytes, ratio(info->archive_nbytes, info->file_nbytes));
}

static void print_json_tensor(const brv_archive *archive, uint64_t index, const brv_tensor *tensor)
{
	char program[PROGRAM_NBYTES];
	printf("%s\n{\"name\": ", index ? "," : "");
	text_put_json(stdout, tensor->name, tensor->name_nbytes);
	printf(", \"dtype\": ");
	text_put_json(stdout, tensor->dtype, strlen(tensor->dtype));
	printf(", \"shape\": [");
	for (size_t i = 0; i < tensor->ndim; i++)
		printf("%s%llu", i ? ", " : "", (unsigned long long)tensor->shape[i]);
	printf("], \"data_offset\": %llu, \"data_nbytes\": %llu, \"archive_nbytes\": %llu, \"ratio\": %.6f, \"program\": ",
	       (unsigned long long)tensor->data_offset, (unsigned long long)tensor->data_nbytes, (unsigned long long)tensor->archive_nbytes,
	       ratio(tensor->archive_nbytes, tensor->data_nbytes));
	brv_describe(archive, index, program, sizeof program);
	text_put_json(stdout, program, strlen(program));
	printf("}");
}

static void print_json(const struct cli *cli, const brv_info *info)
{
	brv_tensor tensor;
	printf("{\"archive\": ");
	text_put_json(stdout, cli->file, strlen(cli->file));
	printf(", \"format_version\": %u, \"archive_nbytes\": %llu, \"file_nbytes\": %llu", info->format_version,
	       (unsigned long long)info->archive_nbytes, (unsigned long long)info->file_nbytes);
	printf(", \"header_nbytes\": %llu, \"data_nbytes\": %llu, \"ratio\": %.6f, \"tensors\": [", (unsigned long long)info->header_nbytes,
	       (unsigned long long)info->data_nbytes, ratio(info->archive_nbytes, info->file_nbytes));
	for (uint64_t i = 0; i < info->tensor_count && brv_get_tensor(cli->archive, i, &tensor, NULL) == BRV_SUCCESS; i++)
		print_json_tensor(cli->archive, i, &tensor);
	printf("]}\n");
}

static void list_archive(const struct cli *cli)
{
	brv_info info;
	brv_get_info(cli->archive, &info);
	if (cli->json)
		print_json(cli, &info);
	else
		print_table(cli->archive, &info);
}

/* One archive after the other; as JSON, an object with a list of what single archives print. */
static enum brv_status list_archives(struct cli *cli, const struct cli_dir *dir)
{
	const char *between = "";
	for (size_t i = 0; i < dir->manifest.count; i++) {
		const struct manifest_entry *entry = &dir->manifest.entry[i];
		if (entry->kind != MANIFEST_ARCHIVE)
			continue;
		TRY(cli_dir_open_archive(cli, dir, entry));
		fputs(between, stdout);
		if (!cli->json) {
			text_put_safe(stdout, entry->path, strlen(entry->path));
			printf(":\n");
		}
		list_archive(cli);
		between = cli->json ? "," : "\n";
	}
	return BRV_OK;
}

static enum brv_status list_directory(struct cli *cli, const char *path)
{
	struct cli_dir dir;
	TRY(cli_dir_open(cli, path, &dir));
	if (cli->json) {
		printf("{\"directory\": ");
		text_put_json(stdout, path, strlen(path));
		printf(", \"archives\": [");
	}
	const enum brv_status status = list_archives(cli, &dir);
	if (cli->json)
		printf("]}\n");
	cli_dir_close(&dir);
	return status;
}

enum brv_status cmd_list(struct cli *cli, int nargs, char **args)
{
	(void)nargs;
	cli->threads = 1; /* nothing to share */
	if (is_directory(args[0]))
		return list_directory(cli, args[0]);
	TRY(cli_open(cli, args[0]));
	list_archive(cli);
	return BRV_OK;
}
