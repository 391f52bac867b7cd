"""Kernels of the router: filter matching and the table of routes.

Python typed for Cython; without a C compiler the same files run as they are, slower.
"""
