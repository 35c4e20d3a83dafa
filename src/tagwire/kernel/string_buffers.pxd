# The fields of `Strings`, for the kernels that fill it; they are told in string_buffers.py.

cdef class Strings:
    cdef tuple _views
    cdef unsigned char *_valid
    cdef int *_ends
    cdef unsigned char *_data
    cdef readonly Py_ssize_t room
    cdef readonly Py_ssize_t size
    cdef readonly Py_ssize_t nulls

cdef (unsigned char *, int *, unsigned char *) pointers_of(Strings column)
