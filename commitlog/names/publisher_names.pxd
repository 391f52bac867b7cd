from commitlog.names.held_numbers cimport HeldNumbers


cdef class PublisherNames:
    cdef public HeldNumbers _held
    cdef public list _leaving
    cdef public object _names, _numbers, _unused, written
    cdef public Py_ssize_t _kept_max
    cdef public long long next_number
    cdef public bint has_dropped

    cpdef trim(self, long long next_lsn, long long memory_lsn, Py_ssize_t drops_max=*)
