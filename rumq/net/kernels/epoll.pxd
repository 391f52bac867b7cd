# What the pump reaches of an epoll set at C speed.
cdef extern from "sys/epoll.h" nogil:
    ctypedef union epoll_data_t:
        int fd

    struct epoll_event:
        unsigned int events
        epoll_data_t data

    int epoll_wait(int fd, epoll_event *events, int events_max, int milliseconds)


cdef class EpollSet:
    cdef object poller, found
    cdef readonly object register, unregister
    cdef int fd
    cdef epoll_event events[512]

    cpdef int wait(self, double seconds) except -1
    cpdef int fd_at(self, Py_ssize_t i) except? -1
    cpdef unsigned int mask_at(self, Py_ssize_t i) except? 0
