/* tree.c: a checkpoint directory turned into a directory of archives (tree.h).
 *
 * check -> list -> copy -> learn -> compress. The list, brevis.manifest, is written first: it says what has to be there in the end, so a run that was killed is
 * taken up by the next, and several jobs fill one directory without talking to each other. SPDX-License-Identifier: Apache-2.0 */
#include "synth/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "synth/compare.h"
#include "synth/tree_job.h"

char *tree_place(struct tree *t, const char *root, const char *path, const char *suffix)
{
	char *full;
	if (asprintf(&full, "%s/%s%s", root, path, suffix) < 0)
		return NULL;
	snprintf(t->report->about, sizeof t->report->about, "%s", full);
	return full;
}

enum brv_status tree_no_memory(struct tree *t) { return fail(t->err, BRV_MEMORY, "no memory for a directory"); }

static int larger_first(const void *a, const void *b)
{
	const struct shard *x = *(struct shard *const *)a, *y = *(struct shard *const *)b;
	return x->nbytes != y->nbytes ? (x->nbytes < y->nbytes ? 1 : -1) : strcmp(x->path, y->path);
}

/* Each shard, from the largest on, goes to the job that has least so far: the same in every job. */
static enum brv_status assign_jobs(struct tree *t)
{
	const unsigned jobs = MAX(t->options->shards, 1u);
	struct shard **order = calloc(t->nshards, sizeof(*order));
	uint64_t *load = calloc(jobs, sizeof(*load));

	for (size_t i = 0; order && load && i < t->nshards; i++)
		order[i] = &t->shard[i];
	if (order && load)
		qsort(order, t->nshards, sizeof(*order), larger_first);
	for (size_t i = 0; order && load && i < t->nshards; i++) {
		unsigned least = 0;
		for (unsigned k = 1; k < jobs; k++)
			least = load[k] < load[least] ? k : least;
		order[i]->job = least;
		load[least] += order[i]->nbytes;
	}
	const bool good = order && load;
	free(order);
	free(load);
	return good ? BRV_OK : tree_no_memory(t);
}

/* Whether an archive that is there already stands for the shard: it is decoded and compared, which takes a small part of the time of making it. */
static enum brv_status look_for_archive(struct tree *t, struct shard *shard)
{
	char *from = path_join(t->in, shard->path), *to = tree_place(t, t->out, shard->path, MANIFEST_SUFFIX);
	struct checkpoint c;
	enum brv_status status = from && to ? BRV_OK : tree_no_memory(t);
	const int fd = status == BRV_OK ? TEMP_FAILURE_RETRY(open(to, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) : -1;
	struct stat st;
	if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
		status = fail(t->err, BRV_USAGE, "is there already and is no file");
		close(fd);
	} else if (fd >= 0) {
		status = checkpoint_open(from, &c, t->err);
		if (status == BRV_OK) {
			shard->done = compare_archive(fd, &c, t->options->threads, t->err) == BRV_OK;
			checkpoint_close(&c);
		}
		close(fd);
		shard->replaces = !shard->done;
		if (status == BRV_OK && !shard->done && !t->options->force)
			status = fail(t->err, BRV_USAGE, "is there already and does not stand for the input; -f overwrites it");
	}
	free(from);
	free(to);
	return status;
}

static enum brv_status find_work(struct tree *t, bool *work)
{
	*work = false;
	for (size_t i = 0; i < t->nshards; i++) {
		struct shard *shard = &t->shard[i];
		if (t->options->shards && shard->job != t->options->shard)
			continue;
		TRY(look_for_archive(t, shard));
		t->report->kept += shard->done;
		*work |= !shard->done;
		if (!shard->done)
			t->total_nbytes += shard->nbytes;
	}
	t->report->about[0] = 0;
	return BRV_OK;
}

static enum brv_status learn_from(struct tree *t, const struct shard *shard, struct learner *learner, struct pool *pool)
{
	struct checkpoint c;
	char *path = tree_place(t, t->in, shard->path, "");
	if (!path)
		return tree_no_memory(t);
	enum brv_status status = checkpoint_open(path, &c, t->err);
	if (status == BRV_OK) {
		status = learner_add(learner, &c, pool, t->err);
		checkpoint_close(&c);
	}
	free(path);
	return status;
}

/* One prior for the whole directory, learned by every job from the same tensors. */
static enum brv_status find_prior(struct tree *t)
{
	const struct synth_options *o = t->options;
	struct learner learner;

	t->prior = alloc_prior();
	if (!t->prior)
		return tree_no_memory(t);
	if (o->no_prior)
		return BRV_OK;
	if (o->prior_in)
		return prior_load(t->prior, o->prior_in, t->err);
	const struct synth_plan plan = plan_of(o, NULL);
	struct pool *pool;
	TRY(alloc_pool(o->threads, &pool, t->err));
	enum brv_status status = learner_start(&learner, &plan, t->prior, t->err);
	for (size_t i = 0; status == BRV_OK && i < t->nshards; i++)
		status = learn_from(t, &t->shard[i], &learner, pool);
	learner_end(&learner);
	free_pool(pool);
	if (status == BRV_OK)
		t->report->about[0] = 0;
	return status == BRV_OK && o->prior_out ? prior_save(t->prior, o->prior_out, o->force, t->err) : status;
}

/* Progress of one archive as that of all. */
static int forward_progress(void *context, uint64_t done, uint64_t total)
{
	struct tree *t = context;
	(void)total;
	return t->options->progress ? t->options->progress(t->options->progress_context, t->done_nbytes + done, t->total_nbytes) : 0;
}

static enum brv_status compress(struct tree *t, const struct shard *shard)
{
	struct synth_options options = *t->options;
	struct synth_report one;
	char *from = path_join(t->in, shard->path), *to = tree_place(t, t->out, shard->path, MANIFEST_SUFFIX);

	options.prior = t->prior, options.prior_in = options.prior_out = NULL;
	options.progress = forward_progress, options.progress_context = t;
	options.force = shard->replaces || t->options->force;
	options.expected_nbytes = shard->nbytes;
	enum brv_status status = from && to ? synth_file(from, to, &options, &one, t->err) : tree_no_memory(t);
	if (status == BRV_OK) {
		t->report->archives++;
		t->report->in_nbytes += one.in_nbytes, t->report->out_nbytes += one.out_nbytes;
		t->report->tensors += one.tensors, t->report->expansions += one.expansions, t->report->seconds += one.seconds;
		t->done_nbytes += shard->nbytes;
	} else if (from && to && !one.about_output) {
		snprintf(t->report->about, sizeof t->report->about, "%s", from);
	}
	free(from);
	free(to);
	return status;
}

static enum brv_status make_archives(struct tree *t)
{
	bool work;
	TRY(assign_jobs(t));
	TRY(find_work(t, &work));
	if (!work && !t->options->prior_out)
		return BRV_OK;
	TRY(find_prior(t));
	for (size_t i = 0; i < t->nshards; i++) {
		const struct shard *shard = &t->shard[i];
		if (!shard->done && (!t->options->shards || shard->job == t->options->shard))
			TRY(compress(t, shard));
	}
	return BRV_OK;
}

/* --explain: the first shard that has the tensor. */
static enum brv_status explain(struct tree *t)
{
	struct synth_options options = *t->options;
	struct synth_report one;

	TRY(find_prior(t));
	options.prior = t->prior, options.prior_in = options.prior_out = NULL;
	for (size_t i = 0; i < t->nshards; i++) {
		char *from = tree_place(t, t->in, t->shard[i].path, "");
		const enum brv_status status = from ? synth_file(from, "", &options, &one, t->err) : tree_no_memory(t);
		free(from);
		if (status != BRV_NOTFOUND)
			return status;
	}
	t->report->about[0] = 0;
	return fail(t->err, BRV_NOTFOUND, "none of its %zu .safetensors files has a tensor \"%.100s\"", t->nshards, t->options->explain);
}

static enum brv_status run(struct tree *t)
{
	TRY(tree_check(t));
	if (t->options->learn_only)
		return find_prior(t);
	if (t->options->explain)
		return explain(t);
	TRY(tree_put_list(t));
	TRY(tree_make_directories(t));
	if (!t->options->shards || t->options->shard == 0)
		TRY(tree_copy_files(t));
	return make_archives(t);
}

enum brv_status synth_tree(const char *in, const char *out, const struct synth_options *options, struct synth_report *report,
			   struct error *err)
{
	struct tree t = { .in = in, .out = out, .options = options, .report = report, .err = err };

	memset(report, 0, sizeof(*report));
	const enum brv_status status = run(&t);
	for (size_t i = 0; i < t.nindexes; i++)
		index_free(&t.index[i]);
	free(t.index);
	free(t.shard);
	free_prior(t.prior);
	manifest_free(&t.manifest);
	walk_free(&t.walk);
	return status;
}
