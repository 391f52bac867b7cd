# What `positioned_write` calls of the system, and what other kernels call of it: pwrite(2), getrusage(2).
cdef extern from "<unistd.h>" nogil:
    Py_ssize_t pwrite(int, const void *, size_t, long long)

cdef extern from "<sys/resource.h>" nogil:
    int RUSAGE_THREAD
    cdef struct rusage:
        long ru_nvcsw
    int getrusage(int, rusage *)

cdef int write_all(int fd, const char *data, Py_ssize_t size, long long position) noexcept nogil
cpdef int write_now(int fd, object data, Py_ssize_t size, long long position) except -1
