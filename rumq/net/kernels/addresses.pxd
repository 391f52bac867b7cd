# What a connection calls at C speed.
cpdef long long packed(str peer) except? -9999
cpdef str unpacked(unsigned int address, int port)
