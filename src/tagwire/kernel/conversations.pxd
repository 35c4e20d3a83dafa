# The fields of the classes of conversations.py; they are told there.

from tagwire.kernel.request_rows cimport Rows, Speaker
from tagwire.kernel.streams cimport Held, Stream

cdef class InFlightRequest:
    cdef long long _time
    cdef long long _position
    cdef long long _request_bytes
    cdef long long _correlation_id
    cdef int _api
    cdef int _version
    cdef Speaker _speaker
    cdef bytes _request

cdef class Side(Stream):
    cdef Connection _connection

cdef class Requests(Side):
    pass

cdef class Responses(Side):
    pass

cdef class Connection:
    cdef readonly bytes ends
    cdef public object told
    cdef Capture _capture
    cdef int state
    cdef bint by_higher
    cdef bint has_requested
    cdef bint is_closing
    cdef int strange
    cdef bytes likely
    cdef public bint raw_tokens
    cdef long long used
    cdef long long last_position
    cdef Requests requests
    cdef Responses responses
    cdef list _open
    cdef Py_ssize_t _first
    cdef dict _early
    cdef Speaker _speaker
    cdef int _request(self, const unsigned char *src, Py_ssize_t at, long long kept, long long size, long long time, long long position)
    cdef int _response(self, const unsigned char *src, Py_ssize_t at, long long kept, long long size, long long time, long long position)
    cdef InFlightRequest _pop(self)
    cdef int _take_tokens(self, bint bare)
    cdef bint _awaits(self, long long correlation_id)
    cdef int _responded_early(self, InFlightRequest request, tuple early)
    cdef int finish(self)
    cdef int let_go(self)
    cdef int _forget_early(self)
    cdef long long kept(self)

cdef class Capture:
    cdef object listener
    cdef bint whole_requests
    cdef bint whole_responses
    cdef Held held
    cdef list done
    cdef bytes _apis
    cdef long long _max_frame
    cdef long long _keep
    cdef Rows _rows
    cdef Requests requests(self, Connection connection)
    cdef Responses responses(self, Connection connection)
    cdef bint has_client_id(self, int api, int version)
    cdef bytes nameless_request(self, const unsigned char *src, Py_ssize_t at, bint by_higher)
    cdef bint looks_like_request(self, const unsigned char *src, Py_ssize_t at, long long length)
    cdef bint looks_like_header(self, const unsigned char *src, Py_ssize_t at, long long length, long long size)
    cdef int emit(self, InFlightRequest request, long long responded, long long response_bytes, bytes response)
    cdef int finish(self)
    cdef int lose(self, int reason, long long position, long long count)
