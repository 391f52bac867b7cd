"""Sessions and what belongs to them: the registry, subscriptions, wills, keep-alive, expiry, counters."""
