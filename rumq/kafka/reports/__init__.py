"""What the operator is told of the groups of all users."""
