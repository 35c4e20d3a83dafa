# The fields of `Group`, which is told in row_groups.py.

cdef class Group:
    cdef readonly int number
    cdef readonly long long speaker
    cdef readonly long long api
    cdef readonly long long version
    cdef readonly long long count
    cdef readonly long long first
    cdef readonly long long first_position
    cdef readonly long long last
    cdef readonly long long last_position
