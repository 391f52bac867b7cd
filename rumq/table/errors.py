"""Errors of reading and writing tables that are not our bugs, each with a remedy.

Pickle rebuilds them from plain arguments, because they cross processes."""

from rumq.errors import RumqError


class BadOption(RumqError, ValueError):
    """An invalid value of an option. allowed: the valid ones"""

    def __init__(self, option: str, value: str, allowed: str) -> None:
        super().__init__(option, value, allowed)
        self.option, self.value, self.allowed = option, value, allowed

    def __str__(self) -> str:
        return f'rumq: option {self.option} = "{self.value}": expected {self.allowed}'


class UnknownOption(RumqError, ValueError):
    """An unknown option. hint: the nearest name, or why it does not apply."""

    def __init__(self, option: str, hint: str) -> None:
        super().__init__(option, hint)
        self.option, self.hint = option, hint

    def __str__(self) -> str:
        return f"rumq: there is no option {self.option}: {self.hint}"


class BadColumn(RumqError, ValueError):
    """A column of a schema that does not exist, or has another type. problem: which of the two, and the way out"""

    def __init__(self, column: str, problem: str) -> None:
        super().__init__(column, problem)
        self.column, self.problem = column, problem

    def __str__(self) -> str:
        return f"rumq: column {self.column} of the schema: {self.problem}"


class BadRow(RumqError, ValueError):
    """A row that cannot be published."""

    def __init__(self, column: str, value: str, allowed: str) -> None:
        super().__init__(column, value, allowed)
        self.column, self.value, self.allowed = column, value, allowed

    def __str__(self) -> str:
        return f"rumq: a row with {self.column} = {self.value!r} cannot be published: expected {self.allowed}"


class DataLoss(RumqError):
    """Requested records cannot be read. failOnDataLoss=false skips them."""

    def __init__(self, partition: str, first: int, next_lsn: int, why: str) -> None:
        super().__init__(partition, first, next_lsn, why)
        self.partition, self.first, self.next_lsn, self.why = partition, first, next_lsn, why

    def __str__(self) -> str:
        return (
            f"rumq: records {self.first} to {self.next_lsn - 1} of {self.partition} cannot be read: {self.why}. "
            "Keep records longer (retention_bytes_max, retention_seconds_max), start later, or skip them: "
            ".option('failOnDataLoss', 'false'), or of rumq.read fail_on_data_loss=False"
        )


class UnknownTopic(RumqError, ValueError):
    """A topic without wildcards that no partition knows. hint: what to write instead, if anything is like it"""

    def __init__(self, topic: str, hint: str) -> None:
        super().__init__(topic, hint)
        self.topic, self.hint = topic, hint

    def __str__(self) -> str:
        return f"rumq: nothing was ever published to topic {self.topic!r}: {self.hint}"


class OtherLog(RumqError):
    """A checkpoint of another log. was, found: the record's segment in that log and in this one"""

    def __init__(self, partition: str, lsn: int, was: str, found: str) -> None:
        super().__init__(partition, lsn, was, found)
        self.partition, self.lsn, self.was, self.found = partition, lsn, was, found

    def __str__(self) -> str:
        return (
            f"rumq: this checkpoint is of another log: record {self.lsn} of {self.partition}, the last that the query "
            f"has processed, was in segment {self.was}, and is in {self.found} here. Read the checkpoint's log (or a "
            "restored copy of it), or begin with a new checkpointLocation, and startingOffsets for its start"
        )


class NoJava(RumqError):
    """Spark cannot start on this machine. what: the cause; do: the remedy"""

    def __init__(self, what: str, do: str) -> None:
        super().__init__(what, do)
        self.what, self.do = what, do

    def __str__(self) -> str:
        return f"rumq: Spark cannot start here: {self.what}: {self.do}"


class WrongWorker(RumqError):
    """Spark's workers run another Python or rumq than the driver."""

    def __init__(self, worker: str, driver: str) -> None:
        super().__init__(worker, driver)
        self.worker, self.driver = worker, driver

    def __str__(self) -> str:
        return (
            f"rumq: Spark's workers run {self.worker}, the driver runs {self.driver}: set PYSPARK_PYTHON to one "
            "Python with rumq before the session starts, or use rumq.spark.session(); executors of a cluster get one "
            "as an archive or an image (docs/guides/spark-cluster.md)"
        )


class NoColumn(RumqError, ValueError):
    """An unknown column of a job or of `rumq.read`. hint: the nearest name, or all columns."""

    def __init__(self, column: str, hint: str) -> None:
        super().__init__(column, hint)
        self.column, self.hint = column, hint

    def __str__(self) -> str:
        return f"rumq: there is no column {self.column}: {self.hint}"


class BrokerCannot(RumqError):
    """The broker, or its settings, lack a feature that `once` needs."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return f"rumq: once = true: the broker {self.what}: change that, or publish with once = false, at least once"


class BadProgressMarker(RumqError):
    """Something else was published to a state topic."""

    def __init__(self, topic: str, payload: bytes) -> None:
        super().__init__(topic, payload)
        self.topic, self.payload = topic, payload

    def __str__(self) -> str:
        return (
            f"rumq: the state topic {self.topic} has {self.payload[:60]!r}, which is no progress marker of this "
            "version: set stateTopic to a topic that no other client publishes to"
        )


class BatchSuperseded(RumqError):
    """An attempt at a superseded batch: a late one, or from an old checkpoint."""

    def __init__(self, topic: str, marked: int, batch: int) -> None:
        super().__init__(topic, marked, batch)
        self.topic, self.marked, self.batch = topic, marked, batch

    def __str__(self) -> str:
        return (
            f"rumq: nothing of batch {self.batch} was published: the progress marker on {self.topic} is at batch "
            f"{self.marked}. Another run of this query is ahead; after restoring an old one, use a new checkpoint"
        )


class Doubt(RumqError):
    """It is unknown which rows the broker has."""

    def __init__(self, topic: str, what: str) -> None:
        super().__init__(topic, what)
        self.topic, self.what = topic, what

    def __str__(self) -> str:
        return (
            f"rumq: {self.what}, so it is unknown which rows it has. Set onceDoubt = repeat, or clear the progress "
            f"marker (an empty retained message to {self.topic}): the batch is then published again from its first row"
        )


class RowsChanged(RumqError):
    """A retry computed other rows than an earlier attempt published."""

    def __init__(self, topic: str, batch: int, first: int, end: int, cleared: bool) -> None:
        super().__init__(topic, batch, first, end, cleared)
        self.topic, self.batch, self.first, self.end, self.cleared = topic, batch, first, end, cleared

    def __str__(self) -> str:
        seen = (
            f"rumq: rows {self.first} to {self.end - 1} of batch {self.batch} are not those that an earlier attempt "
            "published: options changed, or the query is not repeatable (other rows, or another order)"
        )
        if self.cleared:
            return f"{seen}. The progress marker is cleared: the next attempt publishes the batch from its first row"
        return (
            f'{seen} (docs/guides/spark.md, "Each row once"). Set onceDoubt = repeat, or clear the progress marker (an '
            f"empty retained message to {self.topic}): the batch is then published from its first row"
        )
