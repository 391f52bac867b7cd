import cython

from commitlog.chunk cimport Chunk
from router.commands cimport Appended, Committed
from router.delivery cimport Delivery
from router.matching.feed cimport Feed
from router.matching.groups cimport GroupTable
from router.replay_ends cimport ReplayEnds

cdef unsigned int FLAG_RETAIN


cdef class ShardRouter:
    cdef public dict _remote, _steps
    cdef public list feeds
    cdef public Delivery delivery
    cdef public GroupTable groups
    cdef public ReplayEnds _ends
    cdef public long long _visits
    cdef public object retained, sharing, status, subscribing

    cpdef bint begin_turn(self) except -1
    cpdef list step(self, list commands)
    @cython.locals(feed=Feed)
    cpdef _appended(self, Appended command)
    @cython.locals(feed=Feed, live=list, safe=list, chunk=Chunk)
    cpdef _committed(self, Committed command)
    cpdef _live(self, Feed feed, Chunk chunk)
