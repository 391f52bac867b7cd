import cython

from commitlog.chunk cimport Chunk
from commitlog.log.partition cimport Partition
from commitlog.write.segment_writer cimport Flush
from commitlog.write.write_group cimport WriteGroup
from router.commands cimport committed
from rumq.loop.kernels cimport system_clock
from rumq.loop.queues cimport StepQueue
from rumq.loop.scheduler cimport ShardClock
from rumq.loop.stage cimport Stage
from rumq.session.connection.pending_acks cimport AckTracker
from rumq.session.state.histogram cimport Histogram
from rumq.shards.write_path.bulk_allowance cimport BulkAllowance
from rumq.shards.write_path.worker_threads cimport Pool
from rumq.shards.write_path.write_lane cimport Submitted, WriteLane

cdef Py_ssize_t WRITE_BYTES, ROOM_WAITS_MAX
cdef double MARK_SECONDS, JOURNAL_MARK_SECONDS, RETRY_SECONDS, SLOW_SECONDS, NEVER


cdef class GroupCommit(Stage):
    cdef public bint is_draining, is_frozen
    cdef public double linger
    cdef public Submitted submitted
    cdef public list _lanes, _partitions, slow_groups
    cdef public Histogram writes
    cdef public AckTracker _acks
    cdef public StepQueue _commands
    cdef public ShardClock _clock
    cdef public Pool _reader, _writer
    cdef public Py_ssize_t _routed
    cdef public object _admission, _copied, _events, on_indexed
    cdef public set _given_up, _offline, _rolls

    @cython.locals(lane=WriteLane, now=double)
    cpdef end_turn(self)
    @cython.locals(lane=WriteLane, group=WriteGroup)
    cpdef _end_frozen_turn(self, double now)
    @cython.locals(partition=Partition, group=WriteGroup)
    cpdef _pending(self, WriteLane lane, double now)
    cpdef _nothing_pending(self, WriteLane lane, double now)
    cpdef bint _roll(self, WriteLane lane) except -1
    cpdef bint _preallocate(self, WriteLane lane) except -1
    @cython.locals(flush=Flush)
    cpdef _submit(self, WriteLane lane, WriteGroup group)
    @cython.locals(has_written=bint)
    cpdef _write(self, WriteLane lane, WriteGroup group, Flush flush)
    @cython.locals(group=WriteGroup)
    cpdef _flushed(self, WriteLane lane, object _, object fault)
    @cython.locals(group=WriteGroup)
    cpdef _ended(self, WriteLane lane, object _, object fault)
    @cython.locals(index=Py_ssize_t, partition=Partition)
    cpdef _written(self, WriteLane lane, WriteGroup group)
    @cython.locals(index=Py_ssize_t, seconds=double, chunk=Chunk)
    cpdef _note_written(self, WriteLane lane, WriteGroup group)
    @cython.locals(lane=WriteLane, due=double, other=double)
    cpdef double next_deadline(self) except? -1
