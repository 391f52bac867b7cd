
cdef class LoginDetails:
    cdef public object authentication_method, certificate, claimed_user, expires_at


cdef class Client:
    cdef public bint closed
    cdef public unsigned char version, wants_reason_strings
    cdef public unsigned int packet_bytes_max, refusals
    cdef public double connected_at, keep_alive
    cdef public LoginDetails _login
    cdef public object broker, claimed_client_id, identity, limits, permit, policy
    cdef public object session, topics, transport, wire
