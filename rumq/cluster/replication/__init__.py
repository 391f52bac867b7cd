"""The rules by which a log is copied and a leader takes office, sans-IO. docs/explanation/replication.md."""
