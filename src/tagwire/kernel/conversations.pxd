# The fields of the classes of conversations.py; they are told there.

from tagwire.kernel.packets cimport Segments
from tagwire.kernel.streams cimport Held, Stream

cdef class Speaker:
    cdef readonly object told
    cdef readonly object client_id
    cdef Py_ssize_t _number
    cdef object _rows

cdef class Rows:
    cdef readonly Py_ssize_t room
    cdef readonly Py_ssize_t count
    cdef readonly list speakers
    cdef readonly list first_rows
    cdef readonly object times
    cdef readonly object answered
    cdef readonly object speaker_numbers
    cdef readonly object apis
    cdef readonly object versions
    cdef readonly object correlation_ids
    cdef readonly object request_bytes
    cdef readonly object response_bytes
    cdef readonly object positions
    cdef readonly dict requests
    cdef readonly dict answers
    cdef long long *_times
    cdef long long *_answered
    cdef long long *_speaker_numbers
    cdef long long *_apis
    cdef long long *_versions
    cdef long long *_correlation_ids
    cdef long long *_request_bytes
    cdef long long *_response_bytes
    cdef long long *_positions
    cdef long long _kept

cdef class Asked:
    cdef long long _time
    cdef long long _position
    cdef long long _request_bytes
    cdef long long _correlation_id
    cdef int _api
    cdef int _version
    cdef Speaker _speaker
    cdef bytes _request

cdef class Requests(Stream):
    cdef Connection _connection

cdef class Answers(Stream):
    cdef Connection _connection

cdef class Connection:
    cdef readonly bytes ends
    cdef public object told
    cdef Watcher _watcher
    cdef int _state
    cdef bint _by_higher
    cdef bint _asked
    cdef int _strange
    cdef public bint raw_tokens
    cdef long long _used
    cdef long long _last_position
    cdef Requests _requests
    cdef Answers _answers
    cdef list _open
    cdef Py_ssize_t _first
    cdef dict _early
    cdef Speaker _speaker
    cdef int _request(self, const unsigned char *src, Py_ssize_t at, long long kept, long long size, long long time, long long position)
    cdef int _answer(self, const unsigned char *src, Py_ssize_t at, long long kept, long long size, long long time, long long position)
    cdef Asked _pop(self)
    cdef bint _awaits(self, long long correlation_id)
    cdef int _answered_early(self, Asked asked, tuple early)
    cdef int _finish(self)
    cdef int _let_go(self)
    cdef int _forget_early(self)
    cdef long long _held(self)

cdef class Watcher:
    cdef object _listener
    cdef bytes _apis
    cdef long long _max_frame
    cdef long long _keep
    cdef bint _bodies
    cdef long long _max_connections
    cdef long long _max_held
    cdef Held _held
    cdef dict _known
    cdef long long _clock
    cdef Rows _rows
    cdef readonly list done
    cdef Connection _begin(self, bytes ends, bint by_higher, bint begun)
    cdef int _follow(self, Connection connection, bint by_higher, bint begun)
    cdef int _judge(self, Connection connection, const unsigned char *src, Py_ssize_t start, long long length, bint by_higher, long long position)
    cdef bint _is_strange(self, Connection connection, const unsigned char *src, Py_ssize_t start, long long length, long long position)
    cdef bint _looks_like_header(self, const unsigned char *src, Py_ssize_t at, long long length, long long size)
    cdef list _silent(self)
    cdef int _end(self, Connection connection)
    cdef int _forget_oldest(self)
    cdef int _let_go(self)
    cdef bint _looks_like_request(self, const unsigned char *src, Py_ssize_t at, long long length)
    cdef int _emit(self, Asked asked, long long answered, long long response_bytes, bytes answer)
    cdef int _lose(self, int reason, long long position, long long count)
