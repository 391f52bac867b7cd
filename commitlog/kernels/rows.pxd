# What a partition calls at C speed.
cpdef Py_ssize_t number_rows(object rows, Py_ssize_t count, object next_offsets) except -9999
