# The fields of the classes of request_rows.py; they are told there.

cdef class Speaker:
    cdef readonly object told
    cdef readonly object client_id
    cdef Py_ssize_t _number
    cdef long long _serial

cdef class Rows:
    cdef long long _serial
    cdef readonly Py_ssize_t room
    cdef readonly Py_ssize_t count
    cdef readonly list speakers
    cdef readonly list first_rows
    cdef readonly object times
    cdef readonly object responded
    cdef readonly object speaker_numbers
    cdef readonly object apis
    cdef readonly object versions
    cdef readonly object correlation_ids
    cdef readonly object request_bytes
    cdef readonly object response_bytes
    cdef readonly object positions
    cdef readonly dict requests
    cdef readonly dict responses
    cdef long long *_times
    cdef long long *_responded
    cdef long long *_speaker_numbers
    cdef long long *_apis
    cdef long long *_versions
    cdef long long *_correlation_ids
    cdef long long *_request_bytes
    cdef long long *_response_bytes
    cdef long long *_positions
    cdef long long _kept
