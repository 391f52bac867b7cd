"""What partitions write goes to the followers: caught up from disk, then as it is written."""
