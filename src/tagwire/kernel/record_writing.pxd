# The writing of a varint and the difference of two timestamps, for the other record kernels; told in record_writing.py.

cdef Py_ssize_t _put(unsigned char *out, Py_ssize_t at, long long value) noexcept nogil
cdef long long _elapsed(long long base, long long time) noexcept nogil

# What pure-Python mode cannot say: bytes that are written before anyone else sees them, and cut to what was written.

from cpython.object cimport PyObject

cdef extern from "Python.h":
    PyObject *new_bytes "PyBytes_FromStringAndSize"(const char *data, Py_ssize_t size) except NULL
    char *bytes_memory "PyBytes_AS_STRING"(PyObject *data) noexcept
    int cut_bytes "_PyBytes_Resize"(PyObject **data, Py_ssize_t size) except -1
    void release "Py_XDECREF"(PyObject *data)
