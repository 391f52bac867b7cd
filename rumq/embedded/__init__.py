"""A whole broker inside a program or a test: `rumq.broker()`. docs/guides/testing.md; decision 63."""
