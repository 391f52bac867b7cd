
cdef class Appended:
    cdef public Py_ssize_t partition
    cdef public object chunk

cdef class Committed:
    cdef public Py_ssize_t partition
    cdef public object lsn
