"""From settings to the parameters of parts: streams, bounds of the disk, sidecars."""
