"""`rumqd ask` and `rumqd context`: questions to a running broker, over its socket or over REST."""
