# What other kernels may reach of the table at C speed.
cdef class TopicTable:
    cdef readonly Py_ssize_t count
    cdef unsigned long long seed
    cdef unsigned long long *slots
    cdef unsigned long long *old
    cdef Py_ssize_t mask
    cdef Py_ssize_t old_mask
    cdef Py_ssize_t moved
    cdef char *names
    cdef Py_ssize_t names_size
    cdef Py_ssize_t names_used
    cdef dict plain
    cdef bint look(self, const unsigned char *name, Py_ssize_t size) noexcept
    cdef long long found
    cdef Py_ssize_t ahead
    cdef Py_ssize_t next_ahead
    cdef unsigned int ahead_hashes[64]
    cdef const unsigned char *ahead_names[64]
    cdef bint look_ahead(self, const unsigned char *name, Py_ssize_t size) noexcept
    cdef bint look_by(self, unsigned int hash, const unsigned char *name, Py_ssize_t size) noexcept
    cdef Py_ssize_t fetch(self, const unsigned char *packets, Py_ssize_t at, Py_ssize_t end) noexcept
    cdef unsigned int hash(self, const unsigned char *name, Py_ssize_t size) noexcept
    cdef void put(self, unsigned int hash, unsigned long long entry, long long value)
    cdef void move(self, Py_ssize_t count)
    cdef Py_ssize_t at(self, unsigned long long *slots, Py_ssize_t mask, unsigned int hash, const unsigned char *name, Py_ssize_t size) noexcept
