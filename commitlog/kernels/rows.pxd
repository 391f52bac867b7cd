# What a partition calls at C speed.
cpdef Py_ssize_t number_rows(object rows, Py_ssize_t count, object next_offsets) except -9999
cpdef Py_ssize_t index_few(
    object rows, object seen, object first, object following, object column, Py_ssize_t at
) except -9999
