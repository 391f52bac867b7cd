"""Data of released versions, opened by today's: every record, session, retained message and order is there.

`data/` has one archive for each release, written by `python -m tests.upgrade.write`; what is in it is `story`."""
