/* py_archive.c: brevis._native.Archive: an open archive, its description, and the ways to decode from it.
 *
 * Decoding runs without the GIL; py_decode.c has it. What this file is careful about is the life of the archive: close() while another
 * thread decodes takes effect when that thread is done, and a child after a fork opens the archive anew (from the same descriptor, so the
 * same file), because locks of the parent's object may be held by threads that the child does not have.
 *
 * A file is read with pread unless the caller wants it mapped: a mapped file that shrinks or is written to while it is decoded ends the
 * process or worse. SPDX-License-Identifier: Apache-2.0 */
#include "python/native/py_archive.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void release(struct archive_object *self)
{
	brv_close(self->archive);
	self->archive = NULL;
	if (self->map)
		munmap(self->map, self->map_nbytes);
	self->map = NULL;
	if (self->fd >= 0)
		close(self->fd);
	self->fd = -1;
	if (self->has_bytes)
		PyBuffer_Release(&self->bytes);
	self->has_bytes = false;
}

/* Maps the file if it can be; otherwise it is read like any other. */
static void map_file(struct archive_object *self)
{
	struct stat st;
	if (fstat(self->fd, &st) || !S_ISREG(st.st_mode) || st.st_size <= 0)
		return;
	void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, self->fd, 0);
	if (map == MAP_FAILED)
		return;
	self->map = map;
	self->map_nbytes = (size_t)st.st_size;
}

static bool map_is_whole(const struct archive_object *self)
{
	struct stat st;
	return !self->map || (fstat(self->fd, &st) == 0 && (uint64_t)st.st_size >= self->map_nbytes);
}

void archive_expect(PyObject *object, uint64_t data_nbytes)
{
	const struct archive_object *self = (struct archive_object *)object;
	brv_info info;
	brv_get_info(self->archive, &info);
	if (self->map && data_nbytes > info.data_nbytes / 2)
		posix_fadvise(self->fd, 0, 0, POSIX_FADV_WILLNEED);
}

static brv_status_code open_again(struct archive_object *self, brv_error *error)
{
	const brv_options options = { .struct_nbytes = sizeof options, .no_checksums = !self->verify };
	self->generation = fork_generation();
	if (self->has_bytes)
		return brv_open_memory(self->bytes.buf, (size_t)self->bytes.len, &options, &self->archive, error);
	if (self->map)
		return brv_open_memory(self->map, self->map_nbytes, &options, &self->archive, error);
	return brv_open_fd(self->fd, &options, &self->archive, error);
}

struct brv_archive *archive_use(PyObject *object)
{
	struct archive_object *self = (struct archive_object *)object;
	brv_error error;
	if (self->closed)
		return raise_status(BRV_E_USAGE, "the archive is closed"), NULL;
	if (self->generation != fork_generation()) {
		/* The parent's object is left alone, threads inside it and all: here it is only memory. */
		self->users = 0;
		brv_status_code status = open_again(self, &error);
		if (status != BRV_SUCCESS)
			return raise_status(status, error.text), NULL;
	}
	if (!map_is_whole(self))
		return raise_status(BRV_E_DAMAGED, "the file was cut short while it was open"), NULL;
	self->users++;
	return self->archive;
}

void archive_unuse(PyObject *object)
{
	struct archive_object *self = (struct archive_object *)object;
	if (self->users > 0 && --self->users == 0 && self->closed)
		release(self);
}

static PyObject *archive_close(PyObject *object, PyObject *unused)
{
	struct archive_object *self = (struct archive_object *)object;
	(void)unused;
	if (!self->closed && self->generation != fork_generation()) {
		self->archive = NULL;
		self->users = 0;
	}
	if (!self->closed && self->users == 0)
		release(self);
	self->closed = true;
	Py_RETURN_NONE;
}

static void archive_dealloc(PyObject *object)
{
	PyTypeObject *type = Py_TYPE(object);
	Py_XDECREF(archive_close(object, NULL));
	((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
	Py_DECREF(type);
}

/* Archive(source, verify, map): source is a descriptor, which the archive owns from here on, or an object with a buffer. */
static PyObject *archive_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	PyObject *source;
	int verify = 1, want_map = 0, fd = -1;
	brv_error error;
	(void)kwargs;
	if (!PyArg_ParseTuple(args, "O|pp:Archive", &source, &verify, &want_map))
		return NULL;
	if (PyLong_Check(source) && !PyBool_Check(source) && (fd = (int)PyLong_AsLong(source)) < 0)
		return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "a file descriptor is not negative");
	struct archive_object *self = (struct archive_object *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
	if (!self) {
		close(fd);
		return NULL;
	}
	self->fd = fd;
	self->verify = verify;
	if (fd < 0 && PyObject_GetBuffer(source, &self->bytes, PyBUF_SIMPLE)) {
		Py_DECREF(self);
		return NULL;
	}
	self->has_bytes = fd < 0;
	if (want_map && fd >= 0)
		map_file(self);
	brv_status_code status;
	Py_BEGIN_ALLOW_THREADS
	status = open_again(self, &error);
	Py_END_ALLOW_THREADS
	if (status == BRV_SUCCESS)
		return (PyObject *)self;
	Py_DECREF(self);
	return raise_status(status, error.text);
}

static PyObject *shape_tuple(const brv_tensor *tensor)
{
	PyObject *shape = PyTuple_New((Py_ssize_t)tensor->ndim);
	for (size_t i = 0; shape && i < tensor->ndim; i++) {
		PyObject *n = PyLong_FromUnsignedLongLong(tensor->shape[i]);
		if (!n || PyTuple_SetItem(shape, (Py_ssize_t)i, n))
			Py_CLEAR(shape);
	}
	return shape;
}

/* (name, dtype, shape, nbytes, offset, archive_nbytes) */
static PyObject *describe_tensor(const brv_archive *archive, uint64_t index)
{
	brv_tensor tensor;
	brv_error error;
	brv_status_code status = brv_get_tensor(archive, index, &tensor, &error);
	if (status != BRV_SUCCESS)
		return raise_status(status, error.text);
	PyObject *shape = shape_tuple(&tensor);
	PyObject *dtype = PyUnicode_DecodeUTF8(tensor.dtype, (Py_ssize_t)strlen(tensor.dtype), "replace");   /* of a foreign type: any bytes */
	PyObject *name = PyUnicode_DecodeUTF8(tensor.name, (Py_ssize_t)tensor.name_nbytes, "replace");
	if (shape && dtype && name)
		return Py_BuildValue("NNNKKK", name, dtype, shape, (unsigned long long)tensor.data_nbytes, (unsigned long long)tensor.data_offset,
				     (unsigned long long)tensor.archive_nbytes);
	Py_XDECREF(shape);
	Py_XDECREF(dtype);
	Py_XDECREF(name);
	return NULL;
}

static PyObject *archive_tensor(PyObject *self, PyObject *args)
{
	unsigned long long index;
	if (!PyArg_ParseTuple(args, "K:tensor", &index))
		return NULL;
	const brv_archive *archive = archive_use(self);
	if (!archive)
		return NULL;
	PyObject *tensor = describe_tensor(archive, index);
	archive_unuse(self);
	return tensor;
}

/* archive_use(), and what there is to know of the archive. */
static const brv_archive *use_with_info(PyObject *self, brv_info *info)
{
	const brv_archive *archive = archive_use(self);
	if (archive)
		brv_get_info(archive, info);
	return archive;
}

static PyObject *archive_tensors(PyObject *self, PyObject *unused)
{
	brv_info info;
	(void)unused;
	const brv_archive *archive = use_with_info(self, &info);
	if (!archive)
		return NULL;
	PyObject *list = PyList_New((Py_ssize_t)info.tensor_count);
	for (uint64_t i = 0; list && i < info.tensor_count; i++) {
		PyObject *tensor = describe_tensor(archive, i);
		if (!tensor || PyList_SetItem(list, (Py_ssize_t)i, tensor))
			Py_CLEAR(list);
	}
	archive_unuse(self);
	return list;
}

static PyObject *archive_find(PyObject *self, PyObject *name)
{
	Py_ssize_t nbytes;
	uint64_t index;
	const char *text = PyUnicode_AsUTF8AndSize(name, &nbytes);
	const brv_archive *archive = text ? archive_use(self) : NULL;
	if (!archive)
		return NULL;
	brv_status_code status = brv_find_tensor(archive, text, (size_t)nbytes, &index, NULL);
	archive_unuse(self);
	return status == BRV_SUCCESS ? PyLong_FromUnsignedLongLong(index) : PyLong_FromLong(-1);
}

static PyObject *archive_header(PyObject *self, PyObject *unused)
{
	brv_info info;
	(void)unused;
	const brv_archive *archive = use_with_info(self, &info);
	if (!archive)
		return NULL;
	PyObject *header = PyBytes_FromStringAndSize(brv_header(archive), (Py_ssize_t)info.header_nbytes);
	archive_unuse(self);
	return header;
}

static PyObject *archive_info(PyObject *self, PyObject *unused)
{
	brv_info info;
	(void)unused;
	const brv_archive *archive = use_with_info(self, &info);
	if (!archive)
		return NULL;
	archive_unuse(self);
	return Py_BuildValue("{sKsKsKsKsI}", "tensor_count", (unsigned long long)info.tensor_count,
			     "data_nbytes", (unsigned long long)info.data_nbytes, "file_nbytes", (unsigned long long)info.file_nbytes,
			     "archive_nbytes", (unsigned long long)info.archive_nbytes, "format_version", (unsigned)info.format_version);
}

static PyObject *archive_describe(PyObject *self, PyObject *args)
{
	unsigned long long index;
	char text[512];
	if (!PyArg_ParseTuple(args, "K:describe", &index))
		return NULL;
	const brv_archive *archive = archive_use(self);
	if (!archive)
		return NULL;
	brv_describe(archive, index, text, sizeof text);
	archive_unuse(self);
	return PyUnicode_FromString(text);
}

static PyMethodDef archive_methods[] = {
	{ "close", archive_close, METH_NOARGS,
	  "close()\n\nFrees the archive, at once or when the calls that are in it have ended. May be called again." },
	{ "info", archive_info, METH_NOARGS, "info() -> dict\n\ntensor_count, data_nbytes, file_nbytes, archive_nbytes, format_version." },
	{ "header", archive_header, METH_NOARGS, "header() -> bytes\n\nThe JSON header of the .safetensors file, as it was." },
	{ "find", archive_find, METH_O, "find(name) -> int\n\nThe number of the tensor of that name, -1 if there is none." },
	{ "tensor", archive_tensor, METH_VARARGS, "tensor(i) -> (name, dtype, shape, nbytes, offset, archive_nbytes)" },
	{ "tensors", archive_tensors, METH_NOARGS, "tensors() -> list\n\ntensor(i) for every i: in the order of their data." },
	{ "describe", archive_describe, METH_VARARGS, "describe(i) -> str\n\nThe program of a tensor in one line." },
	{ "read", archive_read, METH_VARARGS,
	  "read(numbers, threads, numa) -> list of Memory\n\nWhole tensors, each in memory of its own. All or none: on an error nothing is returned." },
	{ "decode", archive_decode, METH_VARARGS,
	  "decode([(number, offset, buffer), ...], threads, numa)\n\n"
	  "Fills each writable contiguous buffer with as many bytes as it has, from byte `offset` of the tensor." },
	{ NULL, NULL, 0, NULL },
};

static PyType_Slot archive_slots[] = {
	{ Py_tp_new, archive_new },
	{ Py_tp_dealloc, archive_dealloc },
	{ Py_tp_methods, archive_methods },
	{ Py_tp_doc, "Archive(source, verify=True, map=False)\n\nAn archive read from a descriptor (which it then owns) or from an object with a buffer." },
	{ 0, NULL },
};

PyType_Spec archive_spec = {
	.name = "brevis._native.Archive",
	.basicsize = sizeof(struct archive_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = archive_slots,
};
