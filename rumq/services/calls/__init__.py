"""The calls of the services, each from its request to its answer."""
