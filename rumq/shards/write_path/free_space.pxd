import cython

from rumq.loop.stage cimport Stage
from rumq.session.ports.clock cimport TurnClock
from rumq.shards.write_path.write_lane cimport Submitted


cdef class FreeSpaceProbe(Stage):
    cdef public bint _is_measuring
    cdef public double _began_at, _due_at
    cdef public TurnClock _clock
    cdef public Submitted _written
    cdef public long long _began_bytes, _due_bytes
    cdef public object _admission, _pool, _store, latest

    @cython.locals(now=double, written_bytes=longlong)
    cpdef end_turn(self)
