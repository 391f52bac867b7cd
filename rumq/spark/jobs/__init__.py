"""Jobs on the log, one per file: each a plain function on DataFrames, and its options of `rumqd spark run`.

Imports nothing: `rumqd spark run --list` needs neither Spark nor Java."""

JOBS = {
    "parse": "JSON payloads as columns; payloads that do not parse become dead letters with place and reason",
    "downsample": "minimum, mean, maximum and count of columns per time window",
    "sessions": "sessions of a device: from its first message to its last before a gap",
    "last": "the last message of each topic, published as retained",
    "anomaly": "values that are far from the running mean of their topic",
    "dedupe": "each message once, for devices that send them again",
    "geofence": "a device's entries into and exits from areas",
    "export": "messages as Parquet files, one folder per day",
    "replay": "messages published again, at their original pace or faster",
}
