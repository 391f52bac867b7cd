"""The nodes of a cluster as Kafka's clients are told of them, and which one coordinates consumer groups."""
