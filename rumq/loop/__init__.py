"""The loop of a process that serves clients: turns, timers, queues, a guard around faults."""
