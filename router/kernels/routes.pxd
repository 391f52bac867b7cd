# What the router calls at C speed.
cpdef unsigned int route_in(object rows, object routes, unsigned int least) except? 0
cpdef tuple routes_in(object rows, Py_ssize_t first, Py_ssize_t stop, object routes, unsigned int least)
cpdef tuple by_place(Py_ssize_t first, Py_ssize_t stop, object places, Py_ssize_t count)
