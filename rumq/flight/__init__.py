"""The log over Arrow Flight, served by a sidecar process.

docs/guides/spark.md, "From other machines"."""
