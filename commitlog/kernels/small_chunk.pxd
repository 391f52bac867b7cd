# What the layout of chunks calls at C speed.
cpdef unsigned int join(list chunks, object out, Py_ssize_t frames_at) except? 1
cpdef Py_ssize_t encode(
    object out, object rows, object frames, object topics, object publishers, unsigned int flags,
    unsigned long long salt, unsigned long long base_lsn, unsigned long long base_ts, unsigned long long durable_lsn,
    unsigned int epoch, unsigned int chain, unsigned int generation, Py_ssize_t align,
    Py_ssize_t ahead,
) except -1
cpdef unsigned int header_word(object out, Py_ssize_t number) except? 1
