# A CONNECT is read with its fields at C speed.
import cython

from rumq.mqtt.wire cimport Fields


cpdef int version_of_connect(bytes body) except -1
@cython.locals(fields=Fields, version=int, flags=int, keep_alive=int, clean_start=bint)
cpdef decode_connect(int first_byte, bytes body)
@cython.locals(at=Py_ssize_t)
cdef int _take_version(Fields fields) except -1
cdef _check_flags(int flags, int version)
