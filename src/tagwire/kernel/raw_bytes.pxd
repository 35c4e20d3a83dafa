# What the other kernels take from raw_bytes.py, where it is told.

cdef unsigned char *memory_of(object view) except? NULL
cdef long long int32_at(const unsigned char *src, Py_ssize_t at) noexcept
cdef long long int64_at(const unsigned char *src, Py_ssize_t at) noexcept
