
cdef class Client:
    cdef public bint closed, wants_reason_strings
    cdef public double connected_at, keep_alive
    cdef public object authentication_method, broker, certificate, claimed_client_id, claimed_user
    cdef public object expires_at, identity, limits, packet_bytes_max, permit, policy
    cdef public object refusals, session, topics, transport, version, wire
