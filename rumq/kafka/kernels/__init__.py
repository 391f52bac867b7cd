"""Kernels of the Kafka server, compiled by Cython; they also run as Python."""
