"""Which readers want a topic: filters, groups of equal filters, routes, retained messages."""
