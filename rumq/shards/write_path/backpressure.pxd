import cython

from commitlog.log.partition cimport Partition
from router.matching.feed cimport Feed
from rumq.loop.stage cimport Stage
from rumq.session.ports.backpressure cimport BackpressureBits
from rumq.session.ports.clock cimport TurnClock
from rumq.shards.write_path.bulk_allowance cimport BulkAllowance


cdef class WatchedPart:
    cdef public Py_ssize_t index
    cdef public Partition partition
    cdef public BulkAllowance allowance
    cdef public double bulk_at, shared_until
    cdef public Feed near
    cdef public object feed, source

    @cython.locals(unwritten=longlong)
    cpdef long long pending(self) except -1
    @cython.locals(allowance=BulkAllowance)
    cdef bint is_crowded(self, long long pending, double now) except -1


cdef class Backpressure(Stage):
    cdef public BackpressureBits bits
    cdef public list _parts, _slowed
    cdef public long long pending_bytes_max
    cdef public TurnClock _clock
    cdef public object _acks, _commit, _events, _uncommitted

    @cython.locals(part=WatchedPart, pending=longlong, now=double, modest=ulonglong, bulk=ulonglong)
    cpdef end_turn(self)
    cpdef end_second_step(self)
