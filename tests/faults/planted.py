"""Faults of the log that its tests must notice: a line as it is, the same line wrong, and the test that fails then.

Each was tried once by hand; `test_planted.py` tries them all on a copy."""

from typing import NamedTuple

POWER = "tests/faults/test_power_loss.py"
TORN = "tests/faults/test_torn_or_damaged.py"
BITS = "tests/faults/test_flipped_bits.py"
CALLS = "tests/faults/test_failing_calls.py"
FULL = "tests/faults/test_full_disk.py"
CLOCKS = "tests/faults/test_clocks.py"
MUTATED = "tests/faults/test_mutated_files.py"
ROOM = "tests/commitlog/disk/test_preallocation.py"
PAGES = "tests/commitlog/write/test_pages.py"
BACKLOG = "tests/shards/delivery/test_backlog_costs.py"


class Planted(NamedTuple):
    name: str
    file: str
    right: str
    wrong: str
    caught_by: str


PLANTED = [
    # Pages
    Planted(
        "a group behind a mark ends in the page of the next one",
        "commitlog/write/segment_writer.py",
        "        ahead = self.position % align\n",
        "        ahead = 0\n",
        PAGES,
    ),
    # What is on disk before something is said
    Planted(
        "a group is acknowledged without a sync",
        "commitlog/write/write_group.py",
        "        if writer.sync_groups:\n            writer.sync()\n",
        "",
        POWER,
    ),
    Planted(
        "a small group is acknowledged without a sync",
        "commitlog/write/segment_writer.py",
        "        if self.syncs:\n            self._files.sync(self._handle)\n\n    def write_now",
        "\n    def write_now",
        POWER,
    ),
    Planted(
        "a small group that could not be synced counts as written",
        "rumq/shards/write_path/group_commit.py",
        "        if isinstance(fault, Exception):\n            group.failed(fault)\n",
        "        fault = None\n        if isinstance(fault, Exception):\n            group.failed(fault)\n",
        "tests/shards/write_path/test_group_commit.py",
    ),
    Planted(
        "what became of a flush is not asked",
        "rumq/shards/write_path/worker_threads.py",
        "failure = OSError(number, os.strerror(number)) if number else None",
        "failure = None",
        "tests/shards/write_path/test_worker_threads.py",
    ),
    Planted(
        "a new segment's name is not synced",
        "commitlog/write/segment_writer.py",
        "            self._files.sync_directory(self._directory)\n            self._pay()\n",
        "            self._pay()\n",
        POWER,
    ),
    Planted(
        "a file is put in place before its content is synced",
        "commitlog/disk/files.py",
        "        write_whole(files, handle, temporary, content)\n        files.sync(handle)\n    except",
        "        write_whole(files, handle, temporary, content)\n    except",
        POWER,
    ),
    Planted(
        "the name of a file that is put in place is not synced",
        "commitlog/disk/files.py",
        '    files.rename(temporary, path)\n    files.sync_directory(path.rpartition("/")[0])\n',
        "    files.rename(temporary, path)\n",
        POWER,
    ),
    Planted(
        "a new directory's name is not synced",
        "commitlog/disk/files.py",
        "            files.sync_directory(parent)\n        except PermissionError:",
        "            pass\n        except PermissionError:",
        POWER,
    ),
    Planted(
        "the mark says more than is durable",
        "commitlog/log/partition.py",
        "group.set(self.writer, chunks, self.committed(), self.next_lsn)",
        "group.set(self.writer, chunks, self.next_lsn, self.next_lsn)",
        POWER,
    ),
    Planted(
        "what a kill left in the page cache is taken for safe",
        "commitlog/log/recovery.py",
        "        files.sync(handle)  # after a kill the tail may be in the page cache only\n",
        "",
        POWER,
    ),
    Planted(
        "a segment is called sealed before it is synced",
        "commitlog/write/segment_writer.py",
        "            self._files.truncate(self._handle, self.position)\n        self.sync()\n",
        "            self._files.truncate(self._handle, self.position)\n",
        POWER,
    ),
    Planted(
        "segments go before the manifest says so",
        "commitlog/write/retention.py",
        "        try:\n            self._promise()\n        except OSError as fault:",
        "        remove_segments(self._files, self.paths)\n"
        "        try:\n"
        "            self._promise()\n"
        "        except OSError as fault:",
        POWER,
    ),
    Planted(
        "topics are not saved before their last record goes",
        "commitlog/write/retention.py",
        "        if not self._dictionary.save(self.first_lsn):\n"
        "            return  # a segment among them is not indexed yet: next time\n",
        "",
        "tests/commitlog/write/test_retention.py",
    ),
    Planted(
        "a discarded segment goes before the manifest says so",
        "commitlog/write/segment_writer.py",
        '                self._owed.append({"edit": "drop", "segment": self._name})\n'
        "                self._pay()\n"
        "            self._files.remove(self.path)\n",
        '                self._owed.append({"edit": "drop", "segment": self._name})\n'
        "            self._files.remove(self.path)\n",
        POWER,
    ),
    # What a failure is answered with
    Planted(
        "a failed sync is tried again on the same file",
        "commitlog/write/write_group.py",
        "                failure = told(fault)\n                self._give_up(failure)\n",
        "                failure = told(fault)\n"
        "                self._writer.sync()\n"
        "                self.safe_lsn = self.end_lsn\n"
        "                return\n",
        CALLS,
    ),
    Planted(
        "a manifest is synced again after its sync failed",
        "commitlog/format/manifest.py",
        "        except OSError:\n            self.close()\n            raise\n",
        "        except OSError:\n            raise\n",
        CALLS,
    ),
    Planted(
        "a segment that could not be indexed is passed over",
        "commitlog/index/dictionary.py",
        "                if base > self.lsn:\n                    break\n",
        "",
        CALLS,
    ),
    Planted(
        "a full disk keeps what retention would free",
        "commitlog/write/retention.py",
        "            self._remove_indexes()\n            self._promise()\n",
        "            raise\n",
        FULL,
    ),
    Planted(
        "publishers are not refused",
        "rumq/shards/write_path/write_admission.py",
        "            batch.refusing = here or index in self._elsewhere\n",
        "            batch.refusing = False\n",
        FULL,
    ),
    Planted(
        "an older client is acknowledged although nothing was stored",
        "rumq/shards/write_path/write_admission.py",
        "            self._unanswered[handler] = index\n            return None\n",
        '            return PublishRefusal(Reason.SUCCESS, "", acknowledged=True)\n',
        FULL,
    ),
    # What is found at a start
    Planted(
        "a tail is torn whatever the marks say",
        "commitlog/format/tail_scan.py",
        "    promised = proved if limit_lsn is None else limit_lsn\n",
        "    promised = reached if limit_lsn is None else limit_lsn\n",
        TORN,
    ),
    Planted(
        "nothing behind damage counts",
        "commitlog/format/tail_scan.py",
        "        for at, header in later:\n            if header.kind not in",
        "        for at, header in []:\n            if header.kind not in",
        TORN,
    ),
    Planted(
        "an idle partition writes no mark",
        "commitlog/log/partition.py",
        "self._pending or self.marked_lsn >= self.committed_lsn or self.offline",
        "self._pending or self.marked_lsn >= 0 or self.offline",
        TORN,
    ),
    # Checksums
    Planted(
        "the checksum of a chunk's parts is skipped",
        "commitlog/format/segment.py",
        "        if crc32(part) != crc:\n            return",
        "        if False:\n            return",
        BITS,
    ),
    Planted(
        "the checksum of a chunk's header is skipped",
        "commitlog/chunk.py",
        "    if crc32(raw[:124]) != crc:\n        return None\n",
        "",
        BITS,
    ),
    Planted(
        "the checksum of an index section is skipped",
        "commitlog/index/index.py",
        " or crc32(section) != head.crcs[number]:",
        ":",
        BITS,
    ),
    Planted(
        "the checksum of an edit is skipped",
        "commitlog/format/manifest.py",
        '        if crc == b"%08x" % crc32(text):',
        "        if len(crc) == 8:",
        BITS,
    ),
    Planted(
        "an edit's values are not looked at",
        "commitlog/format/manifest.py",
        "        if edit is not None and is_sound(edit):",
        "        if edit is not None:",
        MUTATED,
    ),
    # Sessions
    Planted(
        "a packet id is written down before its message",
        "rumq/shards/recovery/checkpoint.py",
        "            without = unsafe_packet_ids(session, unsafe)\n",
        "            without = set()\n",
        "tests/shards/recovery/test_journal_writer.py",
    ),
    # Clocks
    Planted(
        "the governor believes any clock",
        "commitlog/disk/clock_guard.py",
        "        if abs(now_us - expected) > JUMP_US:",
        "        if False:",
        CLOCKS,
    ),
    Planted(
        "jumps are forgotten at a stop",
        "commitlog/log/store.py",
        "    segments.jumps = found.jumps\n",
        "",
        CLOCKS,
    ),
    Planted(
        "time runs backwards in a partition",
        "commitlog/log/partition.py",
        "self._last_ts = now_us = max(now_us, self._last_ts)",
        "self._last_ts = now_us",
        CLOCKS,
    ),
    # Preallocated space
    Planted(
        "zeros are written over records that were appended beyond the last piece",
        "commitlog/write/segment_writer.py",
        "        end = max(self.position, self._allocated)\n",
        "        end = self._allocated or self.position\n",
        ROOM,
    ),
    Planted(
        "a segment whose zeros could not be written is written to",
        "commitlog/write/segment_writer.py",
        "            if fault.errno not in FULL:\n                raise\n            # The room",
        "            # The room",
        ROOM,
    ),
    Planted(
        "a full disk that refuses zeros is a failed write",
        "commitlog/write/segment_writer.py",
        "            if fault.errno not in FULL:\n                raise\n            # The room",
        "            raise\n            # The room",
        ROOM,
    ),
    Planted(
        "a sealed segment keeps its zeros",
        "commitlog/write/segment_writer.py",
        "        if self._allocated > self.position:\n",
        "        if False:\n",
        ROOM,
    ),
    Planted(
        "a start cuts off what is behind a hole",
        "commitlog/disk/preallocation.py",
        "        end = padded(data_end(files, handle, stop, size))\n",
        "        end = padded(stop)\n",
        ROOM,
    ),
    Planted(
        "a reader that was overtaken by the writer skips what it read as zeros",
        "commitlog/format/committed_scan.py",
        "            if next(walk(files, handle, self.salt, self._position, size), None) is None:\n",
        "            if True:\n",
        "tests/commitlog/test_preallocated_reads.py",
    ),
    Planted(
        "a backup has zeros of the active segment",
        "commitlog/read/backup.py",
        "None if finished else self._data_end(here)",
        "None",
        ROOM,
    ),
    Planted(
        "a backup keeps a copy of the same size, in whose last page there is more now",
        "commitlog/read/backup.py",
        "    return ends[0] == ends[1]\n",
        "    return True\n",
        "tests/commitlog/test_preallocated_reads.py",
    ),
    # Small groups
    Planted(
        "a small chunk has another time",
        "commitlog/format/chunk_layout.py",
        "first.base_lsn, first.base_ts, durable_lsn, self._epoch, self._chain,",
        "first.base_lsn, first.base_ts + 1, durable_lsn, self._epoch, self._chain,",
        "tests/commitlog/test_small_groups.py",
    ),
    Planted(
        "of a small group of several chunks only the first one is indexed",
        "commitlog/write/segment_writer.py",
        "            rows = first.rows if len(chunks) == 1 else self._layout.small_rows()\n",
        "            rows = first.rows\n",
        "tests/commitlog/test_small_groups.py",
    ),
    Planted(
        "the index takes rows behind a gap for those before it",
        "commitlog/index/index_builder.py",
        "        if row != self._few_row + self._few_count or self._few_count >= FEW_MAX:",
        "        if self._few_count >= FEW_MAX:",
        "tests/commitlog/index/test_index_builder.py",
    ),
    # Written on the loop
    Planted(
        "the loop waits for an fdatasync",
        "rumq/shards/write_path/group_commit.py",
        "        elif flush.syncs:\n",
        "        elif False:\n",
        "tests/shards/write_path/test_group_commit.py",
    ),
    Planted(
        "the loop writes while a writer thread may use the same files",
        "rumq/shards/write_path/worker_threads.py",
        "        if self.pending > len(self._flushes) or (self._rests and self._monotonic() < self._rests_until):\n",
        "        if self._rests and self._monotonic() < self._rests_until:\n",
        "tests/shards/write_path/test_worker_threads.py",
    ),
    # Sessions that were away
    Planted(
        "what a client cannot take is offered again in each turn",
        "rumq/shards/delivery/fan_out.py",
        "                if flow.waits or each.refused or (",
        "                if (",
        f"{BACKLOG}::test_a_client_that_waits_is_not_offered_again_what_it_cannot_take",
    ),
    Planted(
        "small chunks that were read at once are delivered one by one",
        "rumq/shards/delivery/cold_reads.py",
        "list(joined(read.run(), JOINED_BYTES_MAX))",
        "read.run()",
        f"{BACKLOG}::test_a_window_of_messages_costs_one_sync_and_no_chunk_is_read_twice",
    ),
    Planted(
        "an answer to what has not come again makes room",
        "rumq/shards/delivery/redelivery.py",
        "            if outstanding >= window.limit:\n",
        "            if window.in_flight - len(unsent) >= window.limit:\n",
        "tests/shards/delivery/test_redelivery.py",
    ),
    # Who sends much beside who sends a little
    Planted(
        "a flood that nobody waits for is neither written nor held back",
        "rumq/shards/turn/turn.py",
        "        if self.unstaged_bytes > PLAIN_BYTES_MAX:\n",
        "        if False:\n",
        "tests/shards/turn/test_turn.py",
    ),
    Planted(
        "bulk senders do not rest",
        "rumq/shards/write_path/backpressure.py",
        "        return now < allowance.rests_until and now - self.bulk_at < RESTS_MAX * allowance.rest_seconds\n",
        "        return False\n",
        "tests/shards/write_path/test_backpressure.py",
    ),
    Planted(
        "groups of others have bulk senders rest for ever",
        "rumq/shards/write_path/backpressure.py",
        " and now - self.bulk_at < RESTS_MAX * allowance.rest_seconds",
        "",
        "tests/shards/write_path/test_backpressure.py",
    ),
    Planted(
        "the end of a piece of a flood counts as somebody else",
        "rumq/session/protocol/connected.py",
        "                self.bulk_reads = MODEST_READS\n",
        "                self.bulk_reads = 0\n",
        "tests/session/protocol/test_connected.py",
    ),
]
