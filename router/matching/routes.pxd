import cython

from router.kernels cimport routes as kernel


cdef class RouteTable:
    cdef public dict _interned, _routes, _topics
    cdef public object _groups, _names, _next, _of_topic, denied, epoch, matched
    cdef public unsigned int _least

    @cython.locals(number=cython.uint)
    cpdef tuple route_of_row(self, object rows)
    cpdef tuple route(self, number)
    cpdef tuple routes_of(self, object rows, Py_ssize_t first, Py_ssize_t stop)
