"""The log as a table, the base of Spark and Flight: options, partition ranges, scans. Without Spark and gRPC."""
