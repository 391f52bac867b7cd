"""Kafka's protocol for consumers: the log, read-only, from a process of its own.

docs/reference/kafka.md, docs/decisions/0067-kafka-clients-read-the-log.md"""
