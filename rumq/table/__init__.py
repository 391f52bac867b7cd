"""The log as a table, without Spark and without gRPC: options, partition ranges, scans; under Spark and Flight."""
