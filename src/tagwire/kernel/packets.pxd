# The fields of the columns that packets.py fills, for the kernels that read them; they are told there.

cdef class Packets:
    cdef readonly Py_ssize_t room
    cdef readonly Py_ssize_t count
    cdef readonly object times
    cdef readonly object positions
    cdef readonly object links
    cdef readonly object starts
    cdef readonly object lengths
    cdef readonly object sizes
    cdef long long *_times
    cdef long long *_positions
    cdef long long *_links
    cdef long long *_starts
    cdef long long *_lengths
    cdef long long *_sizes
    cdef int _add(self, long long time, long long position, long long link, long long start, long long length, long long size) noexcept

cdef class Segments:
    cdef readonly Py_ssize_t room
    cdef readonly Py_ssize_t count
    cdef readonly list ends
    cdef readonly object times
    cdef readonly object positions
    cdef readonly object sequences
    cdef readonly object flags
    cdef readonly object starts
    cdef readonly object lengths
    cdef readonly object missing
    cdef readonly object lost
    cdef long long *_times
    cdef long long *_positions
    cdef long long *_sequences
    cdef long long *_flags
    cdef long long *_starts
    cdef long long *_lengths
    cdef long long *_missing
    cdef long long *_lost
