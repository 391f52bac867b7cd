"""The log over Arrow Flight, served by a sidecar process.

docs/spark.md, "From other machines"."""
