# What other kernels may call at C speed.
cdef class Found:
    cdef unsigned int alias
    cdef Py_ssize_t alias_at
    cdef bint expiry
    cdef Py_ssize_t users_at
    cdef Py_ssize_t users_end
    cdef bint users_apart
    cdef object text


cdef int walk_properties(const unsigned char *data, Py_ssize_t at, Py_ssize_t end, Found found)
cdef Py_ssize_t said_qos_at(const unsigned char *data, Py_ssize_t at, Py_ssize_t end)
