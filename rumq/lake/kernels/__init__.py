"""Kernels of the lake: they parse bytes and return numbers. Compiled if possible, else they run as Python."""
