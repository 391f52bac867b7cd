# What other kernels and the delivery may reach at C speed.
from rumq.mqtt.kernels.window cimport Window


cdef class Form:
    cdef readonly unsigned int qos
    cdef readonly int retain
    cdef readonly bint no_local, is_live, is_plain
    cdef readonly object identifiers, publishers
    cdef readonly bytes located, raised

    cpdef bint plain(self)


cdef class Blob:
    cdef public object data
    cdef readonly object expired, too_large, starts, rows
    cdef readonly Py_ssize_t count, qos_count
    cdef readonly bint dated
    cdef readonly unsigned long long base_lsn
    cdef public object stored_rows
    cdef public Py_ssize_t first_row

    cpdef locate(self)


cpdef unsigned int first_flags(object rows) except? 255
cpdef Blob whole(object data, object rows, Py_ssize_t count, bint qos, unsigned long long base_lsn)
cpdef tuple number(
    Window window, Blob blob, Py_ssize_t first, Py_ssize_t stop, unsigned int reader, Py_ssize_t bytes_max,
    unsigned long long dup_below=*,
)
