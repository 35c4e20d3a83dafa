# The classes of streams.py, for the kernel that matches what they cut; told there.

cdef class Held:
    cdef public long long size

cdef class Stream:
    cdef Held _held
    cdef bint begun
    cdef long long _first
    cdef long long _next
    cdef list _waiting
    cdef long long waiting_bytes
    cdef bint _found
    cdef long long _keep
    cdef long long _least
    cdef long long _max_frame
    cdef long long _prefix
    cdef int _prefix_bytes
    cdef bytearray _kept
    cdef long long kept_bytes
    cdef long long _size
    cdef long long _due
    cdef bint _holed
    cdef long long _time
    cdef long long _position
    cdef int begin_frames(self)
    cdef int take_tokens(self, bint bare)
    cdef int begin(self, long long sequence)
    cdef bint begins_again(self, long long sequence)
    cdef bint may_end_at(self, long long sequence)
    cdef int add(self, const unsigned char *src, Py_ssize_t start, long long length, long long missing, long long sequence, long long time, long long position)
    cdef int finish(self)
    cdef int let_go(self)
    cdef int _hand_over(self, const unsigned char *src, Py_ssize_t start, long long length, long long missing, long long time, long long position)
    cdef int _hand_over_unseen(self, long long seen, const unsigned char *src, Py_ssize_t start, long long length, long long missing, long long time, long long position)
    cdef int _wait(self, long long offset, const unsigned char *src, Py_ssize_t start, long long length, long long missing, long long time, long long position)
    cdef int _take_waiting(self)
    cdef int _skip_gap(self)
    cdef int _data(self, const unsigned char *src, Py_ssize_t at, Py_ssize_t end, long long time, long long position)
    cdef int _gap(self, long long size)
    cdef Py_ssize_t _fill(self, const unsigned char *src, Py_ssize_t at, Py_ssize_t end)
    cdef int _keep_more(self, const unsigned char *src, Py_ssize_t at, Py_ssize_t count)
    cdef int _forget_kept(self)
    cdef int _take(self)
    cdef bint _begins(self, const unsigned char *src, Py_ssize_t at, Py_ssize_t end)
    cdef int _lost(self, long long size)
    cdef int _frame(self, const unsigned char *src, Py_ssize_t at, long long kept, long long size, long long time, long long position)
