"""gRPC measured: streamed publish, Subscribe from the begin, and subscribers beside MQTT."""
