# Where the bytes of an object begin: a pointer costs nothing, a typed memoryview an object.
# Good as long as the object lives and is not resized: not beyond the call of a kernel.
from cpython.array cimport array
from cpython.buffer cimport PyBUF_SIMPLE, Py_buffer, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_CheckExact
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact


cdef inline unsigned char *octets(object data) except? NULL:
    cdef Py_buffer view
    if PyBytes_CheckExact(data):
        return <unsigned char *>PyBytes_AS_STRING(data)
    if PyByteArray_CheckExact(data):
        return <unsigned char *>PyByteArray_AS_STRING(data)
    if type(data) is array:
        return (<array>data).data.as_uchars
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    PyBuffer_Release(&view)
    return <unsigned char *>view.buf


cdef inline unsigned int *words(object data) except? NULL:
    return <unsigned int *>octets(data)
