"""The broker's processes: supervisor, sidecars, descriptors passed between shards, placement of clients."""
