"""How much a client is sent and may send: in-flight window, replay rate, rate limits."""
