"""The rules of queues and channels, without sockets, clock or tasks: names, definitions, states, bounds."""
