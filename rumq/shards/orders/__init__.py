"""What the operator has ordered of a shard, and what stays in force of it."""
