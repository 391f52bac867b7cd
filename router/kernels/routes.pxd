# What the router calls at C speed.
cpdef tuple routes_in(object rows, Py_ssize_t first, Py_ssize_t stop, object routes, unsigned int least)
