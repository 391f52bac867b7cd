import cython

from rumq.loop.scheduler cimport ShardClock
from rumq.shards.recovery.journal_writer cimport JournalWriter
from rumq.shards.write_path.backpressure cimport Backpressure
from rumq.shards.write_path.free_space cimport FreeSpaceProbe
from rumq.shards.write_path.group_commit cimport GroupCommit
from rumq.shards.write_path.retained_quota cimport RetainedQuota


cdef class LogStage:
    cdef public ShardClock _clock
    cdef public JournalWriter _journal
    cdef public GroupCommit _commit
    cdef public FreeSpaceProbe _probe
    cdef public Backpressure _backpressure
    cdef public RetainedQuota _quota
    cdef public object _copy, _disk

    @cython.locals(now=double, commit=GroupCommit, probe=FreeSpaceProbe)
    cpdef end_turn(self)
    cpdef end_second_step(self)
