"""Who calls, what they may, and how much at once."""
