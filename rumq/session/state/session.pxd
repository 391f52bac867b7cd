cdef class Absence:
    cdef public object author, expires_at, holder, missed, timer, will, will_at


# The fields of a session. There is one for each client, and most of them are idle.
cdef class Session:
    cdef public unsigned char durable, ended, guarded, is_moving, personal, version
    cdef public unsigned int expiry_seconds
    cdef public long long delivered, number, published
    cdef public Absence _absence
    cdef public object asked, client_id, key, link, owner, publishers, qos2_open, shape, subscriber, window
