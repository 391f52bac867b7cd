# The fields of a connection, for the pump at C speed.
cdef class Connection:
    cdef public bint blocked, closing, dirty, ended, is_bulk, is_plain, is_quiet, lingers, reading, reading_paused, refused
    cdef public int fd
    cdef public Py_ssize_t bytes_in, bytes_out, outbox_bytes_max, room
    cdef public object link, peer, pump, sock, unparsed, write_failed
    cdef public list queue

    cpdef write(self, object data, object owner=*)
    cpdef flush(self)
    cpdef _send(self, list queue)
