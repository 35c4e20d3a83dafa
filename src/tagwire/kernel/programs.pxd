# C types of tagwire.kernel.programs. The numbers stand there too, for the uncompiled run.

cimport cython

cdef enum:
    BOOL = 1
    INT8 = 2
    INT16 = 3
    UINT16 = 4
    INT32 = 5
    UINT32 = 6
    INT64 = 7
    FLOAT64 = 8
    UUID = 9
    STRING = 10
    BYTES = 11
    RECORDS = 12
    STRUCT = 13
    NOT_HERE = 14

cdef enum:
    NULLABLE = 1
    ARRAY = 2
    COMPACT = 4
    TAGGED = 8

cdef enum:
    TAG_SECTION = 1
    OPTIONAL_BUFFER = 2

cdef enum:
    ROW = 5
    SPAN = 6
    MAX_DEPTH = 64

@cython.final
cdef class Program:
    cdef readonly object name
    cdef readonly int version
    cdef int extension
    cdef int *code
    cdef int *structs
    cdef long long *weights
    cdef Py_ssize_t *offsets
    cdef list classes
    cdef list attributes
    cdef list defaults
    cdef list absence
    cdef list missing
    cdef list buffers

    cdef void write(self, object target, Py_ssize_t slot, object value)
    cdef object read(self, object target, Py_ssize_t slot)
    cdef object create(self, Py_ssize_t number)
    cdef object fresh_default(self, Py_ssize_t row)
    cdef object default_struct(self, Py_ssize_t number)
    cdef object missing_struct(self, Py_ssize_t number, object path)
    cdef object path(self, int *rows, long long *indices, int depth)
