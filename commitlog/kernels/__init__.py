"""Kernels of the log: names, rows and topic tables of a segment's index.

Python typed for Cython; without a C compiler the same files run as they are, slower.
"""
