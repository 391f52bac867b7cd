"""gRPC for programs that are no MQTT devices: topics by `rumq.v1.BrokerService`, in a process beside the shards.

It publishes over MQTT to the broker's own Unix socket, reads records from the files of the log, and asks the shards
over their admin sockets. docs/decisions/0060-grpc.md"""
