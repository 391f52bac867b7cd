"""What three copies cost, and what they cost when a node is slow or a client is at another node."""
