/* py_decode.c: decoding many tensors in one call, without the GIL.
 *
 * Now and then the calling thread takes the GIL back to see whether a signal has come: Ctrl-C ends a long load with KeyboardInterrupt.
 * SPDX-License-Identifier: Apache-2.0 */
#include "python/native/py_archive.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { POOL_FROM_NBYTES = 1 << 19 };    /* below this a call takes less time than waking threads does */
static const int64_t signal_interval_ns = 200 * 1000 * 1000;

/* Of the thread that called. */
struct run {
	pthread_t caller;
	PyThreadState *state;
	int64_t next_look_ns;
	bool interrupted;
};

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* brv_progress_fn: not 0 if a signal handler raised. */
static int look_for_signals(void *context, uint64_t done_nbytes, uint64_t total_nbytes)
{
	struct run *run = context;
	(void)done_nbytes, (void)total_nbytes;
	if (!pthread_equal(run->caller, pthread_self()) || now_ns() < run->next_look_ns)
		return 0;
	PyEval_RestoreThread(run->state);
	run->interrupted = PyErr_CheckSignals() != 0;
	run->state = PyEval_SaveThread();
	run->next_look_ns = now_ns() + signal_interval_ns;
	return run->interrupted;
}

/* Decodes all requests; false with an exception. */
static bool decode_all(PyObject *self, const brv_request *request, Py_ssize_t count, unsigned threads, int numa)
{
	struct run run = { .caller = pthread_self(), .next_look_ns = now_ns() + signal_interval_ns };
	brv_call call = { .struct_nbytes = sizeof call, .progress = look_for_signals, .progress_context = &run };
	brv_error error;
	uint64_t nbytes = 0;
	brv_archive *archive = archive_use(self);
	if (!archive)
		return false;
	for (Py_ssize_t i = 0; i < count; i++)
		nbytes += request[i].nbytes;
	archive_expect(self, nbytes);
	brv_status_code status = nbytes < POOL_FROM_NBYTES ? BRV_SUCCESS : pool_take(threads, (brv_numa)numa, &call.pool, &error);
	if (status == BRV_SUCCESS) {
		run.state = PyEval_SaveThread();
		status = brv_decode_list(archive, request, (size_t)count, &call, &error);
		PyEval_RestoreThread(run.state);
	}
	pool_give(call.pool);
	archive_unuse(self);
	if (status != BRV_SUCCESS && !run.interrupted)
		raise_status(status, error.text);
	return status == BRV_SUCCESS;
}

/* The tensors' numbers and sizes. False with an exception. */
static bool measure(PyObject *self, PyObject *numbers, brv_request *request, size_t *nbytes, Py_ssize_t count)
{
	brv_archive *archive = archive_use(self);
	brv_status_code status = BRV_SUCCESS;
	brv_error error;
	bool good = archive != NULL;
	for (Py_ssize_t i = 0; good && i < count; i++) {
		brv_tensor tensor;
		request[i].tensor = PyLong_AsUnsignedLongLong(PyList_GetItem(numbers, i));
		good = !PyErr_Occurred() && (status = brv_get_tensor(archive, request[i].tensor, &tensor, &error)) == BRV_SUCCESS;
		request[i].nbytes = nbytes[i] = good ? tensor.data_nbytes : 0;
	}
	if (archive)
		archive_unuse(self);
	if (status != BRV_SUCCESS)
		raise_status(status, error.text);
	return good;
}

PyObject *archive_read(PyObject *self, PyObject *args)
{
	PyObject *numbers, *list = NULL;
	unsigned threads;
	int numa;
	if (!PyArg_ParseTuple(args, "OIi:read", &numbers, &threads, &numa))
		return NULL;
	if (!PyList_Check(numbers))
		return PyErr_Format(PyExc_TypeError, "read: expected a list of numbers");
	Py_ssize_t count = PyList_Size(numbers);
	brv_request *request = calloc((size_t)count + 1, sizeof *request);
	size_t *nbytes = calloc((size_t)count + 1, sizeof *nbytes);
	if (!request || !nbytes)
		PyErr_NoMemory();
	else if (measure(self, numbers, request, nbytes, count))
		list = memory_new_list(find_state()->memory_type, nbytes, count);
	for (Py_ssize_t i = 0; list && i < count; i++)
		request[i].dst = memory_bytes(PyList_GetItem(list, i));
	if (list && !decode_all(self, request, count, threads, numa))
		Py_CLEAR(list);
	free(request);
	free(nbytes);
	return list;
}

PyObject *archive_decode(PyObject *self, PyObject *args)
{
	PyObject *targets;
	unsigned threads;
	int numa;
	if (!PyArg_ParseTuple(args, "OIi:decode", &targets, &threads, &numa))
		return NULL;
	if (!PyList_Check(targets))
		return PyErr_Format(PyExc_TypeError, "decode: expected a list of (number, offset, buffer)");
	Py_ssize_t count = PyList_Size(targets), held = 0;
	brv_request *request = calloc((size_t)count + 1, sizeof *request);
	Py_buffer *view = calloc((size_t)count + 1, sizeof *view);
	bool good = request && view;
	if (!good)
		PyErr_NoMemory();
	for (; good && held < count; held++) {
		unsigned long long index, offset;
		PyObject *buffer, *item = PyList_GetItem(targets, held);
		good = PyArg_ParseTuple(item, "KKO", &index, &offset, &buffer) &&
		       PyObject_GetBuffer(buffer, &view[held], PyBUF_WRITABLE) == 0;
		if (!good)
			break;
		request[held] = (brv_request){ .tensor = index, .offset = offset, .nbytes = (size_t)view[held].len, .dst = view[held].buf };
	}
	good = good && decode_all(self, request, count, threads, numa);
	while (held > 0)
		PyBuffer_Release(&view[--held]);
	free(request);
	free(view);
	if (!good)
		return NULL;
	Py_RETURN_NONE;
}
