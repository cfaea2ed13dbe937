/* py_native.h: what the files of the extension module brevis._native share.
 *
 * The module is thin: archives, output memory and one decoding call; names, types and shapes are made in Python. It keeps to the stable
 * ABI of CPython 3.11, so one wheel serves all later versions. SPDX-License-Identifier: Apache-2.0 */
#ifndef PYTHON_PY_NATIVE_H
#define PYTHON_PY_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

#include "runtime/brevis.h"

/* Raises the Python exception that stands for status, with text as its message; always NULL. */
PyObject *raise_status(brv_status_code status, const char *text);

/* Counts the forks between the process that loaded the module and this one: what was made under another number has locks that nobody may
 * ever release and threads that are not there. */
unsigned fork_generation(void);
int fork_watch(void);                   /* once, when the module is loaded; an errno value */

/* A pool of that many threads (0: as many as this process may use), so placed, that nobody else uses until pool_give(). *pool is NULL if there is none
 * free, or for one thread: then the calling thread works alone, which is right when other threads decode too. Needs the GIL. */
brv_status_code pool_take(unsigned threads, brv_numa numa, brv_pool **pool, brv_error *error);
void pool_give(brv_pool *pool);         /* NULL is fine */

/* Memory objects: output that owns its bytes. memory_new_list() makes one for each size; all or none. */
extern PyType_Spec memory_spec;
PyObject *memory_new_list(PyObject *type, const size_t *nbytes, Py_ssize_t count);
void *memory_bytes(PyObject *memory);

extern PyType_Spec archive_spec;

/* What the module keeps. */
struct native_state {
	PyObject *memory_type, *archive_type, *error_of;
};
extern struct PyModuleDef native_module;
struct native_state *find_state(void);

#endif
