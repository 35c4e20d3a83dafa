# C types of tagwire.kernel.message_column_writing.

cimport cython
from tagwire.kernel.programs cimport Program

@cython.final
cdef class Given:
    cdef int kind
    cdef int flags
    cdef int tag
    cdef int width
    cdef bint constant
    cdef int absent
    cdef Py_ssize_t start
    cdef Py_ssize_t limit
    cdef Given first
    cdef Given next
    cdef Given tags
    cdef const unsigned char *values
    cdef const unsigned char *validity
    cdef const unsigned char *data
    cdef list held
    cdef long long lowest
    cdef long long highest
    cdef int size
    cdef object default
    cdef long long default_number
    cdef double default_float
    cdef bytes default_bytes

@cython.final
cdef class Writer:
    cdef Program program
    cdef Given root
    cdef int extension
    cdef int fault
    cdef object out
    cdef object ends
    cdef int[::1] row_ends
    cdef char *memory
    cdef Py_ssize_t at
    cdef Py_ssize_t capacity

    cdef Given given(self, int kind, int flags, int tag, tuple column, object default)
    cdef object add_struct(self, Given above, Py_ssize_t number, dict columns, int depth)
    cdef Given field(self, Py_ssize_t row, tuple column, int depth)
    cdef bint room(self, Py_ssize_t count) noexcept
    cdef bint put_integer(self, long long value, int width) noexcept
    cdef bint put_uvarint(self, unsigned long long value) noexcept
    cdef bint put_length(self, long long length, int flags, int width) noexcept
    cdef bint put_bytes(self, const unsigned char *data, Py_ssize_t at, Py_ssize_t size) noexcept
    cdef bint insert_length(self, Py_ssize_t start, Py_ssize_t following, Py_ssize_t length) noexcept
    cdef long long integer(self, Given field, Py_ssize_t at) noexcept
    cdef double real(self, Given field, Py_ssize_t at) noexcept
    cdef Py_ssize_t end(self, Given field, Py_ssize_t at) noexcept
    cdef bint bounded(self, Given field, Py_ssize_t first, Py_ssize_t last) noexcept
    cdef bint is_null(self, Given field, Py_ssize_t at) noexcept
    cdef bint struct(self, Given field, Py_ssize_t index) noexcept
    cdef bint tag_section(self, Given field, Py_ssize_t index) noexcept
    cdef bint optional_buffer(self, Given field, Py_ssize_t index) noexcept
    cdef bint value(self, Given field, Py_ssize_t index) noexcept
    cdef bint null(self, Given field) noexcept
    cdef bint items(self, Given field, Py_ssize_t at) noexcept
    cdef bint text(self, Given field, Py_ssize_t at) noexcept
    cdef bint is_default(self, Given field, Py_ssize_t index) noexcept
