"""Listeners as settings describe them: sockets, transports, policies, and what a reload changes."""
