"""What the protocol of one connection stands on: the broker and the socket as it sees them, its listener's policy."""
