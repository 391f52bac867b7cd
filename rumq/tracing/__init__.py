"""Distributed tracing: W3C trace contexts and spans of sampled publishes. docs/reference/tracing.md"""
