"""Store and forward: what is published is in a log on disk first. docs/decisions/0061-the-clients-outbox.md."""
