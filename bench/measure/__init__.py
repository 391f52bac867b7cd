"""What one run measures: messages, latencies, CPU, memory, disk."""
