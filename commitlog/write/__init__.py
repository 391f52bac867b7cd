"""From chunks to synced bytes: write groups, the active segment, retention; and partitions only in memory."""
