"""The lake: finished segments of the log as Parquet files, in order of topic and time, with a manifest. docs/lake.md.

Knows no broker: it reads the files of a data directory, with the broker on or off, and writes to a folder."""
