# A number that two processes share: who reads it sees what the other one did to memory before it wrote it.
cdef extern from *:
    """
    #define rumq_load(number) __atomic_load_n(number, __ATOMIC_ACQUIRE)
    #define rumq_store(number, value) __atomic_store_n(number, value, __ATOMIC_RELEASE)
    """
    unsigned long long load_acquire "rumq_load" (unsigned long long *number) noexcept nogil
    void store_release "rumq_store" (unsigned long long *number, unsigned long long value) noexcept nogil
