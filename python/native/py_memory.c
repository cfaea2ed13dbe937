/* py_memory.c: brevis._native.Memory: the bytes of one decoded tensor, as a writable buffer that NumPy and torch can stand on.
 *
 * Fresh memory costs more than decoding unless it comes as huge pages, and the allocators of NumPy and torch ask for those only for the
 * largest tensors, or never. So a call's tensors lie side by side in one mapping that asks for them. Each still owns its bytes: it starts
 * on a page of its own and gives its pages back when it goes, whatever the others do. Small tensors, where a page would be waste, come
 * from malloc. SPDX-License-Identifier: Apache-2.0 */
#include "python/native/py_native.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGNMENT = 64, MAPPED_FROM = 1 << 16, HUGE_PAGE = 2 << 20 };

struct memory {
	PyObject_HEAD
	uint8_t *bytes;
	size_t nbytes;
	size_t mapped_nbytes;           /* 0: from malloc */
};

static void memory_dealloc(PyObject *self)
{
	struct memory *memory = (struct memory *)self;
	PyTypeObject *type = Py_TYPE(self);
	if (!memory->mapped_nbytes)
		free(memory->bytes);
	else if (munmap(memory->bytes, memory->mapped_nbytes)) /* too many mappings to split one more: give the pages back at least */
		madvise(memory->bytes, memory->mapped_nbytes, MADV_DONTNEED);
	PyObject_Free(self);
	Py_DECREF(type);
}

static int memory_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
	struct memory *memory = (struct memory *)self;
	return PyBuffer_FillInfo(view, self, memory->bytes, (Py_ssize_t)memory->nbytes, 0, flags);
}

static Py_ssize_t memory_length(PyObject *self) { return (Py_ssize_t)((struct memory *)self)->nbytes; }

void *memory_bytes(PyObject *memory) { return ((struct memory *)memory)->bytes; }

static size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

/* nbytes, a multiple of the page size, on the border of a huge page if they are as large as one. */
static uint8_t *map(size_t nbytes)
{
	size_t slack = nbytes >= HUGE_PAGE ? HUGE_PAGE : 0;
	uint8_t *start = mmap(NULL, nbytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (start == MAP_FAILED)
		return NULL;
	if (slack) {
		uint8_t *border = start + (round_up((uintptr_t)start, HUGE_PAGE) - (uintptr_t)start);
		if (border > start)
			munmap(start, (size_t)(border - start));
		if (border + nbytes < start + nbytes + slack)
			munmap(border + nbytes, (size_t)(start + slack - border));
		start = border;
		madvise(start, nbytes, MADV_HUGEPAGE);
	}
	return start;
}

/* Bytes of one mapping for all large objects, each in pages of its own; 0 if that is not worth while, SIZE_MAX if there cannot be as many.
 * */
static size_t mapping_nbytes(const size_t *nbytes, Py_ssize_t count, size_t page)
{
	size_t total = 0;
	for (Py_ssize_t i = 0; i < count; i++) {
		if (nbytes[i] > PY_SSIZE_T_MAX - HUGE_PAGE || total > PY_SSIZE_T_MAX - HUGE_PAGE)
			return SIZE_MAX;
		if (nbytes[i] >= MAPPED_FROM)
			total += round_up(nbytes[i], page);
	}
	return total > PY_SSIZE_T_MAX - HUGE_PAGE ? SIZE_MAX : total < HUGE_PAGE ? 0 : total;
}

/* One object; at: its pages, NULL: from malloc. */
static PyObject *memory_new(PyObject *type, size_t nbytes, uint8_t *at, size_t mapped_nbytes)
{
	struct memory *memory = PyObject_New(struct memory, (PyTypeObject *)type);
	if (!memory)
		return NULL;
	memory->nbytes = nbytes;
	memory->bytes = at;
	memory->mapped_nbytes = mapped_nbytes;
	if (!at && posix_memalign((void **)&memory->bytes, ALIGNMENT, nbytes ? nbytes : 1)) {
		memory->bytes = NULL;
		Py_DECREF(memory);
		return PyErr_NoMemory();
	}
	return (PyObject *)memory;
}

PyObject *memory_new_list(PyObject *type, const size_t *nbytes, Py_ssize_t count)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), total = mapping_nbytes(nbytes, count, page);
	uint8_t *at = NULL, *end = NULL;
	if (total == SIZE_MAX || (total && !(at = map(total))))
		return PyErr_NoMemory();
	end = at + total;
	PyObject *list = PyList_New(count);
	for (Py_ssize_t i = 0; list && i < count; i++) {
		const size_t mapped_nbytes = at && nbytes[i] >= MAPPED_FROM ? round_up(nbytes[i], page) : 0;
		PyObject *memory = memory_new(type, nbytes[i], mapped_nbytes ? at : NULL, mapped_nbytes);
		at += memory ? mapped_nbytes : 0;
		if (!memory || PyList_SetItem(list, i, memory))
			Py_CLEAR(list);
	}
	if (at < end)                           /* of objects that there was no memory for */
		munmap(at, (size_t)(end - at));
	return list;
}

static PyType_Slot memory_slots[] = {
	{ Py_tp_dealloc, memory_dealloc },
	{ Py_tp_doc, "The bytes of one tensor: a writable buffer, 64-byte aligned, that nothing else refers to." },
	{ Py_bf_getbuffer, memory_getbuffer },
	{ Py_sq_length, memory_length },
	{ 0, NULL },
};

PyType_Spec memory_spec = {
	.name = "brevis._native.Memory",
	.basicsize = sizeof(struct memory),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = memory_slots,
};
