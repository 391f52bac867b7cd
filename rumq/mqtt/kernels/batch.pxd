# What other kernels may reach of a batch at C speed.
cdef class Batch:
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t frames_len
    cdef readonly unsigned int flags
    cdef public bint refusing
    cdef public bint full_of_retained
    cdef unsigned int first_form
    cdef bytearray rows, frames, tags

    cpdef put_tag(self, unsigned long long pid, unsigned long long session)
    cpdef tuple take(self)
    cpdef bytearray taken_rows(self)
    cpdef bytes taken_frames(self)
    cpdef bytes taken_tags(self)
    cpdef begin(self)
