"""Errors of reading and writing tables that are not our bugs, each a sentence with the way out.

Pickle rebuilds them from plain arguments: they come from other processes."""

from rumq.errors import RumqError


class BadOption(RumqError, ValueError):
    """The reader's fault. option, value, and what is allowed."""

    def __init__(self, option: str, value: str, allowed: str) -> None:
        super().__init__(option, value, allowed)
        self.option, self.value, self.allowed = option, value, allowed

    def __str__(self) -> str:
        return f'rumq: option {self.option} = "{self.value}": expected {self.allowed}'


class UnknownOption(RumqError, ValueError):
    """An option that is not known here. hint: the near word, or why it is not for this."""

    def __init__(self, option: str, hint: str) -> None:
        super().__init__(option, hint)
        self.option, self.hint = option, hint

    def __str__(self) -> str:
        return f"rumq: there is no option {self.option}: {self.hint}"


class BadColumn(RumqError, ValueError):
    """A schema asks for what there is not."""

    def __init__(self, column: str, allowed: str) -> None:
        super().__init__(column, allowed)
        self.column, self.allowed = column, allowed

    def __str__(self) -> str:
        return f"rumq: column {self.column} of the schema: expected {self.allowed}"


class BadRow(RumqError, ValueError):
    """A row that cannot be published."""

    def __init__(self, column: str, value: str, allowed: str) -> None:
        super().__init__(column, value, allowed)
        self.column, self.value, self.allowed = column, value, allowed

    def __str__(self) -> str:
        return f"rumq: a row with {self.column} = {self.value!r} cannot be published: expected {self.allowed}"


class DataLoss(RumqError):
    """Records that were asked for cannot be read. failOnDataLoss=false reads on without them."""

    def __init__(self, partition: str, first: int, next_lsn: int, why: str) -> None:
        super().__init__(partition, first, next_lsn, why)
        self.partition, self.first, self.next_lsn, self.why = partition, first, next_lsn, why

    def __str__(self) -> str:
        return (
            f"rumq: records {self.first} to {self.next_lsn - 1} of {self.partition} cannot be read: {self.why}. "
            "Keep records longer (retention_bytes_max, retention_seconds_max), start later, or read on without them: "
            ".option('failOnDataLoss', 'false')"
        )


class OtherLog(RumqError):
    """A checkpoint was made with another log. was, found: the segments that a record was in, and is in here"""

    def __init__(self, partition: str, lsn: int, was: str, found: str) -> None:
        super().__init__(partition, lsn, was, found)
        self.partition, self.lsn, self.was, self.found = partition, lsn, was, found

    def __str__(self) -> str:
        return (
            f"rumq: this checkpoint is of another log: record {self.lsn} of {self.partition}, the last that the query "
            f"has done, was in segment {self.was}, and is in {self.found} here. Read the log that it is of (a restored "
            "copy of that is the same), or begin with a new checkpointLocation; startingOffsets says where"
        )


class NoJava(RumqError):
    """Spark cannot start on this machine. what: was seen; do: the way out"""

    def __init__(self, what: str, do: str) -> None:
        super().__init__(what, do)
        self.what, self.do = what, do

    def __str__(self) -> str:
        return f"rumq: Spark cannot start here: {self.what}: {self.do}"


class WrongWorker(RumqError):
    """A Python of Spark's workers does not fit the driver's."""

    def __init__(self, worker: str, driver: str) -> None:
        super().__init__(worker, driver)
        self.worker, self.driver = worker, driver

    def __str__(self) -> str:
        return (
            f"rumq: Spark's workers run {self.worker}, the driver runs {self.driver}: set PYSPARK_PYTHON to one "
            "Python that has rumq, before the session starts, or use rumq.spark.session()"
        )


class NoColumn(RumqError, ValueError):
    """A job is asked about a column that its rows do not have. hint: the near name, or those that there are."""

    def __init__(self, column: str, hint: str) -> None:
        super().__init__(column, hint)
        self.column, self.hint = column, hint

    def __str__(self) -> str:
        return f"rumq: there is no column {self.column}: {self.hint}"


class BrokerCannot(RumqError):
    """The broker, or its settings, have not what is needed for rows that are stored once."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return (
            f"rumq: once = true: the broker {self.what}: let it, or publish with once = false, at least once"
        )


class BadProgressMarker(RumqError):
    """Something else was published to a state topic."""

    def __init__(self, topic: str, payload: bytes) -> None:
        super().__init__(topic, payload)
        self.topic, self.payload = topic, payload

    def __str__(self) -> str:
        return (
            f"rumq: the state topic {self.topic} holds {self.payload[:60]!r}, which is no mark of this version: set "
            "stateTopic to one that nobody else publishes to"
        )


class BatchSuperseded(RumqError):
    """An attempt at a batch that is behind: a late one, or a checkpoint of yesterday."""

    def __init__(self, topic: str, marked: int, batch: int) -> None:
        super().__init__(topic, marked, batch)
        self.topic, self.marked, self.batch = topic, marked, batch

    def __str__(self) -> str:
        return (
            f"rumq: nothing of batch {self.batch} was published: the mark on {self.topic} is at batch {self.marked}. "
            "Another run of this query is further; if an old checkpoint was restored on purpose, begin with a new one"
        )


class Doubt(RumqError):
    """It cannot be told which rows the broker has."""

    def __init__(self, topic: str, what: str) -> None:
        super().__init__(topic, what)
        self.topic, self.what = topic, what

    def __str__(self) -> str:
        return (
            f"rumq: {self.what}, so it cannot be told which rows it has. Set onceDoubt = repeat, or clear the mark (an "
            f"empty retained message to {self.topic}): the batch is then published again from its first row"
        )


class RowsChanged(RumqError):
    """Rows that were published before came out otherwise."""

    def __init__(self, topic: str, batch: int, first: int, end: int, cleared: bool) -> None:
        super().__init__(topic, batch, first, end, cleared)
        self.topic, self.batch, self.first, self.end, self.cleared = topic, batch, first, end, cleared

    def __str__(self) -> str:
        seen = (
            f"rumq: rows {self.first} to {self.end - 1} of batch {self.batch} are not those that an earlier attempt "
            "published: other options, or a query that gives other rows or another order when it runs again"
        )
        if self.cleared:
            return f"{seen}. The mark is cleared: the next attempt publishes the batch from its first row"
        return (
            f'{seen} (docs/spark.md, "Each row once"). Set onceDoubt = repeat, or clear the mark (an empty retained '
            f"message to {self.topic}): the batch is then published from its first row"
        )
