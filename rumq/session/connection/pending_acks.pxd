
cdef class PendingAcks:
    cdef public bint raised
    cdef public object _broker, _deliveries, barriers, flow, holds, session, transport, wire

cdef class PendingAck:
    cdef public bint barrier
    cdef public object acks, client, parts, pubacks

cdef class AckTracker:
    cdef public list _messages, _promised, _waiting
    cdef public object _awaited, _clock, _flush_journal, _journal_index, _sources, urgent
