"""The MQTT broker: protocol, network, shards, command line, and the readers of its log (Spark, Flight, the lake)."""
