/* py_archive.h: the archive object, and its use from decoding calls. SPDX-License-Identifier: Apache-2.0 */
#ifndef PYTHON_PY_ARCHIVE_H
#define PYTHON_PY_ARCHIVE_H

#include "python/native/py_native.h"

struct archive_object {
	PyObject_HEAD
	brv_archive *archive;
	int fd;                         /* -1: from bytes */
	void *map;                      /* the file, if it is mapped; NULL */
	size_t map_nbytes;
	bool has_bytes, verify, closed;
	Py_buffer bytes;
	unsigned users;                 /* calls that are in the archive; under the GIL */
	unsigned generation;            /* of the process that opened it */
};

/* The archive, which stays open until archive_unuse(); NULL with an exception if it is closed. Both need the GIL. */
brv_archive *archive_use(PyObject *object);
void archive_unuse(PyObject *object);

/* Says that most of the file is about to be read: a mapped file that is not in memory is slow to come otherwise. */
void archive_expect(PyObject *object, uint64_t data_nbytes);

/* Methods of Archive that decode. */
PyObject *archive_read(PyObject *self, PyObject *args);
PyObject *archive_decode(PyObject *self, PyObject *args);

#endif
