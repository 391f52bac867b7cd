import cython

from rumq.session.journal.recorder cimport JournalRecorder
from rumq.loop.stage cimport Stage
from rumq.session.ports.clock cimport TurnClock


cdef class JournalWriter(Stage):
    cdef public object _checkpoints, _last_checkpoint, _lifecycle, _partitions
    cdef public object _router, _snapshots, _topic_id, _waiting, partition
    cdef public bint _is_writing_snapshot
    cdef public double _next_checkpoint
    cdef public JournalRecorder recorder
    cdef public TurnClock _clock

    cpdef flush(self, long long now_us)
    @cython.locals(monotonic=double)
    cpdef end_turn(self)
    cpdef bint _has_work(self, double now) except -1
