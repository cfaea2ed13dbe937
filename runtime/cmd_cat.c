/* cmd_cat.c: `brevis cat`: a tensor, or rows i to j of it, as raw bytes on stdout. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "common/text.h"
#include "runtime/cli_dir.h"
#include "runtime/salvage.h"

/* A number in text[0 .. n - 1], or `none` if n is 0. */
static bool part_number(const char *text, size_t n, uint64_t none, uint64_t *out)
{
	char digits[24];
	*out = none;
	if (n == 0)
		return true;
	if (n >= sizeof digits)
		return false;
	memcpy(digits, text, n);
	digits[n] = 0;
	return text_number(digits, 0, UINT64_MAX, out);
}

/* "[i:j]", "[i:]", "[:j]", "[i]" at `bracket`, the end of an argument. */
static bool parse_rows(const char *bracket, uint64_t rows, uint64_t *low, uint64_t *high)
{
	const char *close = bracket + strlen(bracket) - 1, *colon = strchr(bracket, ':');
	if (close == bracket || *close != ']')
		return false;
	if (colon)
		return part_number(bracket + 1, (size_t)(colon - bracket - 1), 0, low) &&
		       part_number(colon + 1, (size_t)(close - colon - 1), rows, high);
	if (!part_number(bracket + 1, (size_t)(close - bracket - 1), UINT64_MAX, low) || *low == UINT64_MAX)
		return false;
	*high = *low + 1;
	return true;
}

/* Bytes low .. low + *nbytes - 1 of the tensor that rows [bracket] are. */
static enum brv_status find_rows(struct cli *cli, const brv_tensor *tensor, const char *bracket, uint64_t *low_byte, uint64_t *nbytes)
{
	uint64_t low, high, rows = tensor->ndim ? tensor->shape[0] : 0;
	if (tensor->ndim == 0)
		return fail(&cli->err, BRV_NOTFOUND, "a scalar has no rows");
	if (!parse_rows(bracket, rows, &low, &high))
		return fail(&cli->err, BRV_USAGE, "expected rows as [i:j], found %.64s", bracket);
	if (low > high || high > rows)
		return fail(&cli->err, BRV_NOTFOUND, "rows %s: expected within [0:%llu]", bracket, (unsigned long long)rows);
	if (rows == 0 || tensor->data_nbytes % rows)
		return low == high ? BRV_OK : fail(&cli->err, BRV_NOTFOUND, "its rows do not fill whole bytes");
	*low_byte = tensor->data_nbytes / rows * low;
	*nbytes = tensor->data_nbytes / rows * (high - low);
	return BRV_OK;
}

enum brv_status cmd_cat(struct cli *cli, int nargs, char **args)
{
	uint64_t index, low = 0, nbytes = 0;
	const char *bracket;
	brv_tensor tensor;
	struct outfile out;
	(void)nargs;
	TRY(cli_open_tensor(cli, args[0], args[1], &index, &bracket));
	if (cli->keep_going)
		TRY(salvage_begin(cli));
	brv_get_tensor(cli->archive, index, &tensor, NULL);
	if (bracket)
		TRY(find_rows(cli, &tensor, bracket, &low, &nbytes));
	else
		nbytes = tensor.data_nbytes;
	cli->target = "stdout";
	TRY(outfile_open(&out, "-", false, -1, &cli->err));
	enum brv_status status = cli_copy(cli, &out, tensor.data_offset + low, nbytes, 0);
	if (status == BRV_OK) {
		cli->about = cli->target;
		status = outfile_commit(&out, nbytes, &cli->err);
	}
	outfile_abandon(&out);
	return status == BRV_OK ? salvage_end(cli, nbytes) : status;
}
