"""Kafka's door, measured."""
