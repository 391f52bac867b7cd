"""Statistics and answers for the operator: counters, $SYS, the admin socket, the event log."""
