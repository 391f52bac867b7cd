# Typed fields.
cdef class InFlight:
    cdef readonly unsigned int packet_id
    cdef readonly unsigned int qos
    cdef readonly Py_ssize_t payload_bytes
    cdef readonly object packet
    cdef readonly bint is_answered
    cdef InFlight after


cdef class InFlightMessages:
    cdef dict by_id
    cdef InFlight first
    cdef InFlight last
    cdef set unreleased
    cdef set releasing
    cdef public Py_ssize_t taken
    cdef public Py_ssize_t taken_bytes

    cpdef InFlight maybe_at(self, unsigned int packet_id)
    cpdef void add(self, unsigned int packet_id, unsigned int qos, Py_ssize_t payload_bytes, object packet)
    cpdef void note_answered(self, unsigned int packet_id)
    cpdef InFlight maybe_take(self)
    cpdef void note_released(self, unsigned int packet_id)
    cpdef void note_complete(self, unsigned int packet_id)
    cpdef Py_ssize_t on_way(self)
    cpdef bint is_on_way(self, unsigned int packet_id)
    cpdef Py_ssize_t unreleased_count(self)


cdef class RelayRun:
    cdef InFlightMessages messages
    cdef InFlightMessages answered
    cdef dict topics
    cdef object map_topic
    cdef bytes last_key
    cdef bytes last_topic
    cdef bytes way
    cdef bytes target_id
    cdef bint source_v5
    cdef bint target_v5
    cdef unsigned int qos_max
    cdef Py_ssize_t packet_bytes_max
    cdef Py_ssize_t receive_maximum
    cdef bint takes_retained
    cdef bint was_lost
    cdef bytearray made
    cdef Py_ssize_t used

    cdef Py_ssize_t publish(self, const unsigned char *buf, Py_ssize_t pos, Py_ssize_t at, Py_ssize_t stop, Py_ssize_t room) except? -2
    cdef bint knows_topic(self, const unsigned char *buf, Py_ssize_t at, Py_ssize_t size) except? -1
    cdef Py_ssize_t way_at(self, const unsigned char *buf, Py_ssize_t at, Py_ssize_t end) except? -3
    cdef bint answer(self, unsigned int head, unsigned int packet_id) except? -1
    cdef void reserve(self, Py_ssize_t size)
    cdef void put_short(self, unsigned int head, unsigned int packet_id)
