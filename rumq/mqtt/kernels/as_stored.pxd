# What the delivery calls at C speed.
from rumq.mqtt.kernels.fanout cimport Blob, Form

cpdef Blob pick(
    object rows, object frames, object picked, Py_ssize_t first, Py_ssize_t stop, unsigned long long base_lsn, Form form,
    bint v5, Py_ssize_t packet_max,
)
