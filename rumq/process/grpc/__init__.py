"""The process of the gRPC server."""
