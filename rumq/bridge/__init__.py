"""Bridges: messages between this broker and another MQTT broker. docs/guides/bridges.md"""
