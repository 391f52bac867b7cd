from commitlog.write.segment_writer cimport Flush
from commitlog.write.write_group cimport WriteGroup
from rumq.session.connection.pending_acks cimport AckTracker
from rumq.session.state.histogram cimport Histogram
from rumq.loop.queues cimport StepQueue


cdef class GroupCommit:
    cdef public bint is_draining, is_frozen
    cdef public double linger
    cdef public list _due, _in_flight, _mark_due, _own, _partitions, _retry, _submitted, slow_groups
    cdef public Histogram writes
    cdef public AckTracker _acks
    cdef public StepQueue _commands
    cdef public Py_ssize_t _routed
    cdef public object _admission, _clock, _copied, _events, _workers, submitted_bytes
    cdef public set _given_up, _offline, _rolls

    cpdef end_turn(self)
    cpdef _submit(self, Py_ssize_t index, object partition, WriteGroup group)
    cpdef _write(self, Py_ssize_t index, object partition, WriteGroup group, Flush flush)
    cpdef _written(self, Py_ssize_t index, object partition, WriteGroup group, object fault)
