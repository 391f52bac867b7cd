"""The process of the Kafka server."""
