"""Segments as they lie on disk, and how their bytes are laid out and scanned. docs/reference/log-format.md."""
