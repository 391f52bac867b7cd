"""The session journal's entries: recorded while the broker runs, replayed at a start.

docs/reference/session-journal.md."""
