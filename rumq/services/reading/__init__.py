"""Records of the log: its tail for all, subscriptions, single records."""
