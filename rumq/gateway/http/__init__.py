"""HTTP/1.1 over h11: connections, their shares, requests."""
