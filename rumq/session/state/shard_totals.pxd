cdef class ShardTotals:
    cdef public long long bytes_in, bytes_out, connections, delivered, handed_over, packets_in, packets_out, published
    cdef public long long published_bytes, sockets, taken_over
