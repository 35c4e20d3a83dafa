# The reading of one record and one header, for the other record kernels; what they return is told in records.py.

cdef extern from *:
    """
    /* The reading of a record is inlined wherever it is called: left to itself gcc finds it too long, which costs a
       tenth of the time. */
    #if defined(__GNUC__)
    #undef CYTHON_INLINE
    #define CYTHON_INLINE __inline__ __attribute__((always_inline))
    #endif
    """

cdef (int, Py_ssize_t, long long, long long, long long, Py_ssize_t, long long, Py_ssize_t, long long, long long) record_at(
    const unsigned char *src, Py_ssize_t at, Py_ssize_t end
) noexcept nogil
cdef (int, Py_ssize_t, Py_ssize_t, long long, Py_ssize_t, long long) header_at(
    const unsigned char *src, Py_ssize_t at, Py_ssize_t end
) noexcept nogil
cdef long long shifted(long long base, long long delta) noexcept nogil
cdef int cause(int code, long long value) noexcept nogil
