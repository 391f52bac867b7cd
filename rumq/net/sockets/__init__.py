"""Sockets as the operating system has them: descriptors passed between processes, Unix addresses, limits."""
