import cython

from router.kernels cimport routes as kernel
from router.readers.reader cimport Group, LiveReaders, Reader
from router.matching.routes cimport RouteTable


@cython.locals(
    wants=dict, place=Py_ssize_t, number=object, group=Group, form=Py_ssize_t, live=LiveReaders, readers=list, reader=Reader,
    asked=list, starts=list, parts=list, others=list,
)
cpdef tuple scatter(
    RouteTable routes, Py_ssize_t index, list numbers, object places, Py_ssize_t first, Py_ssize_t stop, bint committed_only,
)
cpdef bint is_one_form(list asked)
