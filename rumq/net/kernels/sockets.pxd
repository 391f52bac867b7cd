# What the pump and a connection call at C speed. A failure is a negative errno.
cpdef Py_ssize_t receive(int fd, object buffer, Py_ssize_t at, bint bulk, Py_ssize_t most=*) except? -9999
cpdef Py_ssize_t send(int fd, list queue) except? -9999
cpdef Py_ssize_t send_one(int fd, object data) except? -9999
