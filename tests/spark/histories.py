"""A log whose old segments are in a lake only, for the tests beside it."""

from pathlib import Path
from typing import Any

from commitlog import RealFiles, Store
from commitlog.read.log_reader import LogReader
from rumq.lake.folder import LocalFolder
from rumq.lake.parquet.export import Exporter
from tests.commitlog.records import NOW, index, mark
from tests.spark.logs import SECOND_US, Publisher, message, store_at

FULL_HOUR = NOW - NOW % 3_600_000_000


class History:
    """Two partitions; messages of a second each, of 20 chunks a call. A segment has some chunks."""

    def __init__(self, root: Path) -> None:
        self.data, self.lake = str(root / "data"), str(root / "lake")
        self.store: Store = store_at(self.data, partitions=2, segment_bytes_max=16_000)
        self.count = 0

    def publish(self, chunks: int = 20) -> None:
        for partition in self.store.own:
            publisher = Publisher(partition)
            for n in range(self.count, self.count + chunks):
                properties: Any = {}
                if n // 20 != 1:  # there a segment has none at all
                    properties = {"content_type": "x"}
                    properties |= {"user_properties": [("n", str(n)), ("n", "again")]} if n % 3 else {}
                ts_us = FULL_HOUR + n * 100 * SECOND_US
                messages = [
                    message(f"plant/{n % 7}/{kind}", b"%d" % n, n % 2, **properties) for kind in ("temp", "speed")
                ]
                plain = [message("other", b"y" * 200) for _ in range(8)]
                publisher.chunk([*messages, *plain], ts_us)
            index(partition)
            mark(partition)
        self.count += chunks

    def export(self, *, merge_at: int | None = None, keep_s: int = 0) -> None:
        """As the broker's exporter does. merge_at: and merge all that is there, at that second"""
        exporter = Exporter(RealFiles(), self.data, LocalFolder(self.lake), marks=True)
        exporter.run()
        if merge_at is not None:
            exporter.merge(1 << 40, now_s=merge_at, keep_s=keep_s)
        exporter.close()

    def remove(self, segments: int) -> None:
        """As retention does; segments: so many of each partition stay."""
        for number, partition in enumerate(self.store.own):
            found = self.view(number).segments()
            removal = partition.take_removal(found[-segments].base_lsn)
            assert removal is not None
            removal.run()
            partition.removed(removal)

    def view(self, number: int) -> Any:
        return LogReader(RealFiles(), self.data).maybe_partition(f"main/g1/p{number}")

    def close(self) -> None:
        self.store.close()
