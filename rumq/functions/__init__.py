"""Functions on batches: Python functions that follow the log, and what is published of it.

docs/guides/functions.md; decision 62."""
