"""Jobs on the log, one a file: each a plain function on DataFrames, and what `rumqd spark run` asks for it.

Imports nothing: `rumqd spark run --list` needs neither Spark nor Java."""

JOBS = {
    "parse": "JSON payloads as columns; what does not parse goes to a dead letter, with its place and why",
    "downsample": "least, mean, greatest and count of columns, in windows of time",
    "sessions": "when a device was there: from its first message to its last before a gap",
    "last": "the last message of each topic, published as retained",
    "anomaly": "values that are far from the running mean of their topic",
    "dedupe": "each message once, where devices send them again",
    "geofence": "when a device enters and leaves areas",
    "export": "messages as Parquet files, a folder a day",
    "replay": "messages published again, at their own pace or faster",
}
