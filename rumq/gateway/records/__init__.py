"""Records of the log for REST: rows, positions, watching."""
