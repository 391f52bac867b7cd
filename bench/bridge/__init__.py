"""What a bridge relays between two brokers."""
