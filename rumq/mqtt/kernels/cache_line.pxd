# Have the processor fetch a line of memory that will be read soon; any address may be given.
cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define rumq_touch(address) __builtin_prefetch(address)
    #else
    #define rumq_touch(address) ((void)(address))
    #endif
    """
    void touch "rumq_touch" (const void *address) noexcept nogil
