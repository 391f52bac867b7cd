# What other kernels may call at C speed.
cpdef bytes location(bytes located, unsigned long long topic_offset, unsigned long long lsn, long long ts_us)
cdef Py_ssize_t expiry_at(const unsigned char[::1] frames, Py_ssize_t at, Py_ssize_t end)
cdef bint says_qos(const unsigned char[::1] frames, Py_ssize_t at, Py_ssize_t end)
