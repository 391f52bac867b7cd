
cdef class JournalWriter:
    cdef public object _checkpoints, _clock, _last_checkpoint, _lifecycle, _next_checkpoint, _partitions
    cdef public object _router, _snapshots, _topic_id, _waiting, partition, recorder
