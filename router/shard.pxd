from commitlog.chunk cimport Chunk
from router.commands cimport Appended, Committed
from router.delivery cimport Delivery
from router.feed cimport Feed


cdef class Shard:
    cdef public dict _remote, _steps
    cdef public list feeds
    cdef public Delivery delivery
    cdef public object groups, retained, sharing, status, subscribing

    cpdef list step(self, list commands)
    cpdef _appended(self, Appended command)
    cpdef _committed(self, Committed command)
    cpdef _live(self, Feed feed, Chunk chunk)
