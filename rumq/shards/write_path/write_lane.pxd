import cython

from commitlog.log.partition cimport Partition
from commitlog.write.write_group cimport WriteGroup
from rumq.shards.write_path.bulk_allowance cimport BulkAllowance


cdef double NEVER


cdef class Submitted:
    cdef public long long bytes


cdef class WriteLane:
    cdef public Partition partition
    cdef public WriteGroup group
    cdef public BulkAllowance allowance
    cdef public Py_ssize_t index
    cdef public long long frozen_lsn
    cdef public double due_at, mark_due_at, mark_seconds, retry_at, submitted_at
    cdef public object flushed, written

    cpdef bint is_unwritten(self) except -1
    @cython.locals(due_at=double)
    cpdef double next_deadline(self) except? -1
