"""Connections and their transports: the epoll loop, TLS, WebSocket, PROXY protocol, listeners, outboxes."""
