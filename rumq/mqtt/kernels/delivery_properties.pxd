# What other kernels may call at C speed.
cpdef bytes location(bytes located, unsigned long long topic_offset, unsigned long long lsn, long long ts_us)
