# The fields of `Watcher`, which is told in watching.py.

from tagwire.kernel.conversations cimport Capture, Connection
from tagwire.kernel.packets cimport Segments
from tagwire.kernel.streams cimport Stream

cdef class Watcher:
    cdef Capture _capture
    cdef long long _max_connections
    cdef long long _max_held
    cdef dict _known
    cdef long long _clock
    cdef Connection _begin(self, bytes ends, bint by_higher, bint begun)
    cdef bint _begins_again(self, Connection connection, bint by_higher, long long sequence)
    cdef int _follow(self, Connection connection, bint by_higher, bint begun)
    cdef int _judge(self, Connection connection, const unsigned char *src, Py_ssize_t start, long long length, bint by_higher, long long position)
    cdef bint _is_strange(self, Connection connection, const unsigned char *src, Py_ssize_t start, long long length, long long sequence, long long position)
    cdef list _silent(self)
    cdef int _end(self, Connection connection)
    cdef int _forget_oldest(self)
    cdef int _let_go(self)
