"""The log over the network as Arrow batches: Arrow Flight, served beside the broker by a process of its own.

docs/spark.md, "From other machines"."""
