"""Commands of the HTTP gateway: its process, and its tokens."""
