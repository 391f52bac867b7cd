# What a turn asks of the system's clocks at C speed.
cpdef long long now_us() except? -1
cpdef double monotonic() except? -1
