import cython

from commitlog.chunk cimport Chunk
from router.effects cimport all_rows
from router.matching.feed cimport Feed
from router.readers.moved_groups cimport MovedGroups
from router.readers.reader cimport Group, LiveReaders, Reader
from router.matching.routes cimport RouteTable


cdef Py_ssize_t DENIED


cdef class Delivery:
    cdef public dict _deferred_feeds, _deferred_readers, _unconfirmed
    cdef public list effects, feeds
    cdef public MovedGroups groups
    cdef public object _backlog_max

    cpdef list begin_step(self)
    cpdef deliver_chunk(self, Feed feed, Chunk chunk, bint committed_only)
    cpdef bint has_deferred(self)
    @cython.locals(group=Group, routes=RouteTable, index=Py_ssize_t, stop=Py_ssize_t, numbers=list, route=tuple)
    cpdef Py_ssize_t _deliver_live(self, Feed feed, Chunk chunk, Py_ssize_t first, bint committed_only) except -1
    @cython.locals(group=Group, index=Py_ssize_t, live=LiveReaders, form=Py_ssize_t, readers=list)
    cdef _deliver_route(
        self, Feed feed, Chunk chunk, tuple route, Py_ssize_t first, Py_ssize_t stop, bint committed_only
    )
    @cython.locals(reader=Reader)
    cpdef _deliver_all(
        self, Feed feed, Chunk chunk, Group group, Py_ssize_t first, Py_ssize_t stop, list readers, Py_ssize_t form
    )
    cpdef _deliver_some(
        self, Feed feed, Chunk chunk, Group group, Py_ssize_t first, Py_ssize_t stop, list readers, object wanted,
        object places,
    )
