"""Reading: Spark's data source on the log, batch and streaming; schema, filters, ranges, positions."""
