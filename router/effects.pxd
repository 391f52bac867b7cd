
cdef class ChunkRows:
    cdef public object chunk
    cdef public Py_ssize_t partition, first, stop


cdef class Scatter(ChunkRows):
    cdef public list parts


cdef class Deliver(ChunkRows):
    cdef public object group, wanted, places, denied
    cdef public list readers
    cdef public Py_ssize_t form
