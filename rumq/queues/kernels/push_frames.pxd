# Typed fields; only this module uses them.
cdef class PushFrames:
    cdef readonly bytearray data, starts, ids
    cdef readonly Py_ssize_t count
    cdef long long _expiry
    cdef bytes _expiry_properties

    cdef void _put(self, unsigned int first_byte, bytes topic, bytes properties, bytes payload)
    cdef bytes _properties(self, long long expiry)
