"""Broker processes: each shard owns partitions and clients, and runs pump, router and log in turns."""
