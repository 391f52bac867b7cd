"""From PUBLISH to the log: admission, backpressure, group commit, topic numbers, worker threads."""
