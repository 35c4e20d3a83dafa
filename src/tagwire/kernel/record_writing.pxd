# The writing of a varint and the difference of two timestamps, for the other record kernels; told in record_writing.py.

cdef Py_ssize_t _put(unsigned char *out, Py_ssize_t at, long long value) noexcept nogil
cdef long long _elapsed(long long base, long long time) noexcept nogil

# What pure-Python mode cannot say: bytes that are written before anyone else sees them, and end before the few that were
# slack, without their memory being asked for anew.

from cpython.object cimport PyObject

cdef extern from *:
    """
    static inline void tagwire_close_bytes(PyObject *data, Py_ssize_t size) {
        Py_SET_SIZE((PyVarObject *) data, size);
        PyBytes_AS_STRING(data)[size] = 0;
    }
    """
    void close_bytes "tagwire_close_bytes"(PyObject *data, Py_ssize_t size) noexcept

cdef extern from "Python.h":
    PyObject *new_bytes "PyBytes_FromStringAndSize"(const char *data, Py_ssize_t size) except NULL
    char *bytes_memory "PyBytes_AS_STRING"(PyObject *data) noexcept
    int cut_bytes "_PyBytes_Resize"(PyObject **data, Py_ssize_t size) except -1
    void release "Py_XDECREF"(PyObject *data)

# Text that is ASCII, where it stands: no bytes are made of a header's key.

    bint is_ascii "PyUnicode_IS_COMPACT_ASCII"(object text) noexcept
    Py_ssize_t ascii_length "PyUnicode_GET_LENGTH"(object text) noexcept
    void *ascii_data "PyUnicode_DATA"(object text) noexcept
