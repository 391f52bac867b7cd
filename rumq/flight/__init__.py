"""The log over the network as Arrow batches: Arrow Flight, served beside the broker by a process of its own.

docs/spark.md, "From other machines". Server and client know no MQTT and no Spark; tickets, planning and who may read
what know no socket."""
