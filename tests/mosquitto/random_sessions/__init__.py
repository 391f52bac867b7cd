"""Random sessions of three clients, played to rumqd and to mosquitto at once: what clients get must be the same.

`actions` chooses what they do, from a seed; `twin_client` does it at both brokers and says what counts of what it
gets; `play` compares. `python -m tests.mosquitto.random_sessions --seeds 1000` plays many."""
