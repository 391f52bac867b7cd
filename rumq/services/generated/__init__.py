"""Code made from the proto files by packaging/grpc_code.py; nothing here is edited."""
