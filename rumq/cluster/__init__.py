"""Several machines: where each shard runs, and how its log is copied. docs/explanation/replication.md."""
