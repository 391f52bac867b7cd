"""Byte streams to a broker: TCP, TLS, WebSocket, Unix sockets; addresses and URLs. Knows no MQTT."""
