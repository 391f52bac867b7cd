"""What loads a broker: publishers, subscribers and connections in worker processes, and what they count."""
