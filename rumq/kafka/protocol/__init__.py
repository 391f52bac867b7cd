"""Bytes <-> requests and answers of Kafka's protocol. No sockets, no clock, no log."""
