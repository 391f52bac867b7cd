"""Kernels of the protocol: parse PUBLISH, build what subscribers get, packet id windows, topic tables.

Python typed for Cython; without a C compiler the same files run as they are, slower.
"""
