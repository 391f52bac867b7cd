
cdef class Partition:
    cdef public Py_ssize_t wants_room
    cdef public dict _publisher_numbers
    cdef public list _hot, _hot_lsns, _pending
    cdef public object _hot_bytes, _hot_bytes_max, _in_flight, _last_ts, directory, durable_lsn, files
    cdef public object generation, index, marked_lsn, next_lsn, next_offsets, number, offline
    cdef public object pending_bytes, publisher_names, segments, spec, stream, topic_ids, topic_names
    cdef public object writer, written_lsn
