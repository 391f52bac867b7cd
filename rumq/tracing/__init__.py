"""Distributed tracing: W3C trace contexts and spans of sampled publishes. docs/tracing.md"""
