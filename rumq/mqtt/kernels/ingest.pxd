from rumq.mqtt.kernels.wire_state cimport Wire

cpdef Py_ssize_t cut(Wire wire, list batches, object data, Py_ssize_t pos, Py_ssize_t end, object topics) except -1
