# The fields of a session. There is one for each client, and most of them are idle.
cdef class Session:
    cdef public unsigned char durable, ended, guarded, is_moving, personal, version
    cdef public unsigned int expiry_seconds
    cdef public long long delivered, number, published
    cdef public object asked, author, client_id, expires_at, holder, key, link, missed, owner, publishers, qos2_open
    cdef public object shape, subscriber, timer, will, will_at, window
