"""Kernels of the loop: the system's clocks.

Python typed for Cython; without a C compiler the same files run as they are, slower.
"""
