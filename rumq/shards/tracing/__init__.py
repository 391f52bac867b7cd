"""Tracing in a shard: who published, deliveries and replays, and pages of spans for the gateway."""
