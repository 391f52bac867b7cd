"""Kernels of the services: records of the log as protobuf."""
