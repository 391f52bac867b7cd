"""Queues for gRPC: trio in the asyncio loop, the door to `rumq.queues`, its messages as protobuf, who consumes."""
