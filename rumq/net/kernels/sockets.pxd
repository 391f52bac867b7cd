# What the pump and a connection call at C speed. A failure is a negative errno.
cdef extern from "sys/socket.h" nogil:
    ctypedef unsigned int socklen_t
    cdef struct sockaddr:
        pass
    cdef struct sockaddr_storage:
        unsigned short ss_family
    int AF_INET, AF_INET6, SOCK_CLOEXEC, SOCK_NONBLOCK
    int accept4(int listening, sockaddr* at, socklen_t* size, int flags)

cdef extern from "netdb.h" nogil:
    int NI_NUMERICHOST, NI_NUMERICSERV
    int getnameinfo(
        const sockaddr* at, socklen_t size, char* host, socklen_t host_size, char* port, socklen_t port_size, int flags
    )

cpdef tuple accept(int listening)
cpdef Py_ssize_t receive(int fd, object buffer, Py_ssize_t at, bint bulk, Py_ssize_t most=*) except? -9999
cpdef Py_ssize_t send(int fd, list queue) except? -9999
cpdef Py_ssize_t send_one(int fd, object data) except? -9999
