"""What the log asks of the disk: system calls, free space, preallocation, clocks, the number of shards on file."""
