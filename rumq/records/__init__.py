"""Records of a log wherever it is, in a data directory with its lake or on a Flight server, as Arrow batches.

Knows no Spark: `rumq.read` and the Spark source both read through this package."""
