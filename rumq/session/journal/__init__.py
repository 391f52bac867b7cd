"""The session journal's entries: recorded while the broker runs, replayed at a start. docs/session-journal.md."""
