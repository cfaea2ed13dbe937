/* py_module.c: the extension module brevis._native: its types, its few functions, and how a status becomes an exception.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "python/native/py_native.h"

#include <string.h>

struct native_state *find_state(void)
{
	PyObject *module = PyState_FindModule(&native_module);
	return module ? PyModule_GetState(module) : NULL;
}

PyObject *raise_status(brv_status_code status, const char *text)
{
	struct native_state *state = find_state();
	PyObject *message = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
	PyObject *error = state && message ? PyObject_CallFunction(state->error_of, "iO", (int)status, message) : NULL;
	if (error)
		PyErr_SetObject((PyObject *)Py_TYPE(error), error);
	else if (!PyErr_Occurred())
		PyErr_SetString(PyExc_SystemError, text);
	Py_XDECREF(error);
	Py_XDECREF(message);
	return NULL;
}

static PyObject *native_isa(PyObject *module, PyObject *unused)
{
	(void)module, (void)unused;
	return PyUnicode_FromString(brv_isa());
}

static PyMethodDef native_methods[] = {
	{ "isa", native_isa, METH_NOARGS, "isa() -> str\n\nThe instruction set in use: 'avx512', 'scalar', ..." },
	{ NULL, NULL, 0, NULL },
};

static int native_traverse(PyObject *module, visitproc visit, void *arg)
{
	struct native_state *state = PyModule_GetState(module);
	Py_VISIT(state->memory_type);
	Py_VISIT(state->archive_type);
	Py_VISIT(state->error_of);
	return 0;
}

static int native_clear(PyObject *module)
{
	struct native_state *state = PyModule_GetState(module);
	Py_CLEAR(state->memory_type);
	Py_CLEAR(state->archive_type);
	Py_CLEAR(state->error_of);
	return 0;
}

struct PyModuleDef native_module = {
	PyModuleDef_HEAD_INIT,
	.m_name = "brevis._native",
	.m_doc = "libbrevis for Python: archives, output memory, decoding without the GIL. Used by the package brevis; not a public interface.",
	.m_size = sizeof(struct native_state),
	.m_methods = native_methods,
	.m_traverse = native_traverse,
	.m_clear = native_clear,
};

static int fill_module(PyObject *module)
{
	struct native_state *state = PyModule_GetState(module);
	PyObject *errors = PyImport_ImportModule("brevis._errors");
	state->error_of = errors ? PyObject_GetAttrString(errors, "error_of") : NULL;
	Py_XDECREF(errors);
	state->memory_type = PyType_FromSpec(&memory_spec);
	state->archive_type = PyType_FromSpec(&archive_spec);
	if (!state->error_of || !state->memory_type || !state->archive_type)
		return -1;
	return PyModule_AddObjectRef(module, "Memory", state->memory_type) || PyModule_AddObjectRef(module, "Archive", state->archive_type) ||
	       PyModule_AddStringConstant(module, "version", BRV_VERSION_STRING);
}

PyMODINIT_FUNC PyInit__native(void);    /* python.h has no prototype for it */

PyMODINIT_FUNC PyInit__native(void)
{
	if (fork_watch()) {
		PyErr_SetString(PyExc_ImportError, "no memory to watch for forks");
		return NULL;
	}
	PyObject *module = PyModule_Create(&native_module);
	if (module && fill_module(module)) {
		Py_DECREF(module);
		return NULL;
	}
	return module;
}
