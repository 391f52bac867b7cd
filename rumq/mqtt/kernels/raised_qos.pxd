# What other kernels may call at C speed.
cdef Py_ssize_t raised_at(const unsigned char *data, Py_ssize_t at, Py_ssize_t end)
