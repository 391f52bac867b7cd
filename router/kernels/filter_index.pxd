# Types of the fields of FilterIndex: what they are is in filter_index.py.
cdef class FilterIndex:
    cdef public Py_ssize_t count, nodes
    cdef public long long visits
    cdef public dict numbers, levels
    cdef public list counts, filters, targets, paths, branches, level_counts
    cdef public list free_nodes, free_filters, free_levels
    cdef public object rows
