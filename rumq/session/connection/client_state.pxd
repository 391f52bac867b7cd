
cdef class Client:
    cdef public bint closed
    cdef public unsigned char version, wants_reason_strings
    cdef public unsigned int packet_bytes_max, refusals
    cdef public double connected_at, keep_alive
    cdef public object authentication_method, broker, certificate, claimed_client_id, claimed_user
    cdef public object expires_at, identity, limits, permit, policy
    cdef public object session, topics, transport, wire
