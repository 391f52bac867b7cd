"""Kernels of the transports: WebSocket frames.

Python typed for Cython; without a C compiler the same files run as they are, slower.
"""
