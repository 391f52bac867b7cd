# The job of a `FlushThread`, and what it calls of the system: threads, signals, pwrite(2), fdatasync(2).
cdef extern from "Python.h" nogil:
    unsigned long PyThread_start_new_thread(void (*)(void *) noexcept nogil, void *)

cdef extern from "<signal.h>" nogil:
    ctypedef struct sigset_t:
        pass
    int SIG_BLOCK
    int sigfillset(sigset_t *)
    int pthread_sigmask(int, const sigset_t *, sigset_t *)

cdef extern from "<unistd.h>" nogil:
    Py_ssize_t read(int, void *, size_t)
    Py_ssize_t write(int, const void *, size_t)
    int fdatasync(int)


cdef struct FlushJob:
    int jobs_fd
    int ended_fd
    int stopped_fd
    int fd
    const char *data
    Py_ssize_t size
    long long position
    bint stops
    int state  # RUNS; then what `flush` returned, the last that the thread writes of a job
