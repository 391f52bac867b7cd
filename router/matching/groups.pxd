import cython


cdef class GroupTable:
    cdef public Py_ssize_t _partitions, _private, committed_only
    cdef public long long rematch_visits, turn, visits_left, visits_reserved
    cdef public dict _by_filter, _by_wants, _targets, _under_way
    cdef public list crowded, ended
    cdef public object filters, local_filters

    @cython.locals(ahead=longlong, least=longlong)
    cpdef begin_turn(self, long long visits)
