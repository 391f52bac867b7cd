"""What can go wrong in Spark that is not our bug, each a sentence with the way out. Rebuilt from plain arguments by
pickle: they come from other processes."""

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
