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
GROUPS = "tests/kafka/groups/test_coordinator.py"
OFFSETS = "tests/kafka/groups/test_commit_file.py"
PAGES = "tests/commitlog/write/test_pages.py"
PACKING = "tests/commitlog/write/test_segment_packing.py"
PACKED_LOGS = "tests/commitlog/write/test_packing_keeps_everything.py"
PACKED_SOURCE = "tests/commitlog/write/test_packed_source.py"
PACKER = "tests/shards/retention/test_segment_packer.py"
NAMED_ONCE = "tests/kafka/answers/test_named_once.py"
KEPT_OFFSETS = "tests/kafka/groups/test_group_service.py"
MOVES = "tests/kafka/nodes/test_moves.py"
KEPT_VALUES = "tests/shards/admin/test_kept_values.py"
SHARD_COMMITS = "tests/kafka/nodes/test_shard_commits.py"
RELAY = "tests/bridge/test_relay.py"
BRIDGE = "tests/bridge/test_bridge.py"
RELAY_RUN = "tests/bridge/test_relay_run.py"
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
    # Packing
    Planted(
        "a packed file takes the segment's place before it is synced",
        "commitlog/write/packed_file.py",
        "        self._files.sync(self._handle)\n",
        "",
        POWER,
    ),
    Planted(
        "a reader does not see that a segment was replaced",
        "commitlog/format/segment.py",
        "        return opening(files, handle, path).header.salt\n",
        "        return salt\n",
        PACKING,
    ),
    Planted(
        "an edit of the manifest is true of whatever file has the name",
        "commitlog/format/manifest.py",
        '        if edit.get("salt", salt) == salt:\n',
        "        if edit:\n",
        PACKING,
    ),
    Planted(
        "where the client ids of a file are is taken for those of the packed one",
        "commitlog/read/partition_view.py",
        "        key = segment.path, segment.salt\n",
        "        key = segment.path, 0\n",
        PACKING,
    ),
    Planted(
        "the places of chunks in a file are taken for those of the packed one",
        "commitlog/index/segments.py",
        "        key = segment.path, segment.salt\n",
        "        key = segment.path, 0\n",
        PACKING,
    ),
    Planted(
        "a packed chunk lacks records of its segment",
        "commitlog/write/packed_file.py",
        "self._layout.data(chunks, self._durable, ALIGN)",
        "self._layout.data(chunks[:-1] or chunks, self._durable, ALIGN)",
        PACKING,
    ),
    Planted(
        "a segment is replaced while retention removes it",
        "commitlog/log/packing.py",
        "    if segments.removing or packing.packed is None",
        "    if packing.packed is None",
        PACKING,
    ),
    Planted(
        "retention removes a segment while it is replaced",
        "commitlog/log/partition.py",
        "        if segments.removing or segments.replacing or count <= 0:",
        "        if segments.removing or count <= 0:",
        PACKING,
    ),
    Planted(
        "a packed file that is not used stays",
        "commitlog/log/store.py",
        "        for path in found.unpacked:\n            files.remove(path)\n",
        "",
        PACKING,
    ),
    Planted(
        "times of chunks that are joined already overflow in a packed one",
        "commitlog/write/packed_file.py",
        "            last_ts = chunk.base_ts + header.max_ts_delta\n",
        "            last_ts = chunk.base_ts\n",
        PACKED_LOGS,
    ),
    Planted(
        "what a later version says of a chunk is lost by packing",
        "commitlog/write/segment_packing.py",
        "        if not is_known(self._header, header, raw):\n",
        "        if False:\n",
        PACKED_SOURCE,
    ),
    Planted(
        "packed segments are packed again at each start",
        "commitlog/write/segment_packing.py",
        "        if size + own > PIECE_BYTES or place.last_ts - first_ts > APART_US_MAX:\n",
        "        if size + own > PIECE_BYTES:\n",
        PACKING,
    ),
    Planted(
        "of a packed file only so much is read as the file before had when it was listed",
        "commitlog/index/index.py",
        "        if stop is None or (salt is not None and salt != head.salt):\n",
        "        if stop is None:\n",
        PACKING,
    ),
    Planted(
        "a view of a segment that was packed while it was listed ends before an earlier view",
        "commitlog/read/partition_view.py",
        "        size = max(found.size, self._files.size(found.path))\n",
        "        size = found.size\n",
        PACKING,
    ),
    Planted(
        "a packed file takes its place after the threads of writers have ended",
        "rumq/shards/retention/segment_packer.py",
        "        if self._lifecycle.stop_phase:  # the writer's thread may have ended\n",
        "        if False:\n",
        PACKER,
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
        "self._salt, chunk.base_lsn, chunk.base_ts, durable_lsn,",
        "self._salt, chunk.base_lsn, chunk.base_ts + 1, durable_lsn,",
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
    # Kafka's consumer groups
    Planted(
        "a commit of an old generation is taken",
        "rumq/kafka/groups/group.py",
        "sender.generation != self.generation",
        "sender.generation > self.generation",
        GROUPS,
    ),
    Planted(
        "who did not join again keeps its place",
        "rumq/kafka/groups/group.py",
        "if each.joining is None and each.instance_id is None]:",
        "if each.joining is None and each.instance_id is None][:0]:",
        GROUPS,
    ),
    Planted(
        "who leaves a group takes its partitions along",
        "rumq/kafka/groups/group.py",
        "        else:\n            self._begin_join(now)\n",
        "        else:\n            pass\n",
        GROUPS,
    ),
    Planted(
        "a static member that hung commits beside the one in its place",
        "rumq/kafka/groups/group.py",
        "if known.member_id == member_id else ErrorCode.FENCED_INSTANCE_ID",
        "if known.member_id else ErrorCode.FENCED_INSTANCE_ID",
        GROUPS,
    ),
    Planted(
        "a group skips what a log that went back has since",
        "rumq/kafka/answers/commit_answers.py",
        "return newer if newer < min(commit.offset, view.end_lsn) else commit.offset",
        "return commit.offset",
        "tests/kafka/test_group_server.py",
    ),
    Planted(
        "an offset is acknowledged without a sync",
        "rumq/kafka/groups/commit_file.py",
        "        self._files.sync(self._handle)\n",
        "",
        OFFSETS,
    ),
    Planted(
        "offsets of a group in use expire when the server starts again",
        "rumq/kafka/groups/group_service.py",
        "            if key in used or self.coordinator.has_members(key):\n",
        "            if False:\n",
        KEPT_OFFSETS,
    ),
    Planted(
        "a member that comes and leaves between two looks renews nothing",
        "rumq/kafka/groups/group_service.py",
        "            self._used.add(key)\n",
        "            pass\n",
        KEPT_OFFSETS,
    ),
    Planted(
        "offsets expire before members can come back after a start",
        "rumq/kafka/groups/group_service.py",
        "        await trio.sleep(SESSION_SECONDS_MAX)\n",
        "",
        KEPT_OFFSETS,
    ),
    Planted(
        "an offset that expires takes the commit along that is on its way",
        "rumq/kafka/groups/group_service.py",
        "            await self._write_made(self._out_of_date, ENTRIES_MAX)\n",
        "            found = self._out_of_date()\n            await self._write_made(lambda: found, ENTRIES_MAX)\n",
        KEPT_OFFSETS,
    ),
    Planted(
        "damage in a long record is taken for the end of the file",
        "rumq/kafka/groups/commit_file.py",
        "LOOKED_THROUGH_BYTES = 1 << 20",
        "LOOKED_THROUGH_BYTES = 1 << 16",
        OFFSETS,
    ),
    Planted(
        "commits on their way are not counted",
        "rumq/kafka/groups/committed_offsets.py",
        "        self.on_the_way += size\n",
        "",
        KEPT_OFFSETS,
    ),
    Planted(
        "a commit that nobody waits for any more is counted forever",
        "rumq/kafka/groups/group_service.py",
        "        self.end_way()\n        self.is_done.set()\n",
        "        self.is_done.set()\n",
        KEPT_OFFSETS,
    ),
    Planted(
        "an offset is counted at a part of what it takes of memory",
        "rumq/kafka/groups/committed_offsets.py",
        "ENTRY_BYTES = 800",
        "ENTRY_BYTES = 200",
        OFFSETS,
    ),
    Planted(
        "all that may be a record in a damaged file is checked",
        "rumq/kafka/groups/commit_file.py",
        "checked > CHECKED_BYTES_MAX or ",
        "",
        OFFSETS,
    ),
    Planted(
        "a server does not wait for its predecessor's end",
        "rumq/process/kafka/group_parts.py",
        "LOCK_SECONDS, LOCK_AGAIN_SECONDS = 2.0,",
        "LOCK_SECONDS, LOCK_AGAIN_SECONDS = 0.0,",
        "tests/kafka/test_process.py",
    ),
    Planted(
        "members that leave in one request leave one by one",
        "rumq/kafka/groups/coordinator.py",
        "errors = group.leave(leavers, now)",
        "errors = [group.leave([each], now)[0] for each in leavers]",
        GROUPS,
    ),
    Planted(
        "a group reads again what came before the clock was set back",
        "rumq/kafka/answers/commit_answers.py",
        "    at_ms = max(client.door.now_us() // 1000, 0 if partition is None else partition.newest_ms)\n",
        "    at_ms = client.door.now_us() // 1000\n",
        "tests/kafka/test_group_server.py",
    ),
    Planted(
        "an answer about groups is as large as there are groups",
        "rumq/kafka/reports/group_report.py",
        "        left -= len(msgspec.json.encode(row))\n",
        "",
        "tests/kafka/reports/test_group_report.py",
    ),
    Planted(
        "all that a leader has assigned is read for the operator",
        "rumq/kafka/reports/assignment.py",
        "        left -= len(member.assignment)\n",
        "",
        "tests/kafka/reports/test_assignment.py",
    ),
    Planted(
        "who only reads is told of the groups of all users",
        "rumq/gateway/contract/endpoints.py",
        '            each.summary,\n            "administer",\n',
        '            each.summary,\n            "read",\n',
        "tests/gateway/handlers/test_kafka_endpoints.py",
    ),
    Planted(
        "a group is moved under its members",
        "rumq/kafka/reports/group_actions.py",
        "if (error := groups.may_commit(key, NOBODY)) == ErrorCode.NONE:",
        "if True:",
        "tests/kafka/reports/test_group_actions.py",
    ),
    Planted(
        "a group is described as often as its name is repeated",
        "rumq/kafka/answers/group_tool_answers.py",
        'for name in dict.fromkeys(body["groups"])]}',
        'for name in body["groups"]]}',
        NAMED_ONCE,
    ),
    Planted(
        "the partitions of a topic are told as often as its name is repeated",
        "rumq/kafka/answers/topic_answers.py",
        'once(wanted, "name", "topic_id")',
        "wanted",
        NAMED_ONCE,
    ),
    Planted(
        "a committed offset is told as often as its partition is repeated",
        "rumq/kafka/answers/commit_answers.py",
        'list(dict.fromkeys(each["partition_indexes"]))',
        'each["partition_indexes"]',
        NAMED_ONCE,
    ),
    # Bridges
    Planted(
        "a bridge tells the source that the target has a message before it has",
        "rumq/bridge/relay.py",
        "        return Moves([], [message])\n\n    def pubrel",
        "        return Moves(self._answered(packet.packet_id), [message])\n\n    def pubrel",
        RELAY,
    ),
    Planted(
        "a bridge completes a message before the target has released its id",
        "rumq/bridge/relay.py",
        "        return Moves([], [Pubrel(packet.packet_id)])",
        "        return Moves([Pubcomp(packet.packet_id)], [Pubrel(packet.packet_id)])",
        RELAY,
    ),
    Planted(
        "a message goes back to a broker that it has passed",
        "rumq/bridge/relay.py",
        "        if self._target.broker_id and self._target.broker_id in passed:",
        "        if self._source_id and self._source_id in passed[:-1]:",
        RELAY,
    ),
    Planted(
        "ids of a source's lost session are not released at the target",
        "rumq/bridge/bridge.py",
        "                await release_ids(connections[OTHER[side]])\n",
        "                await trio.sleep(0)\n",
        BRIDGE,
    ),
    Planted(
        "one connection of a bridge lives on when the other one ends",
        "rumq/bridge/link.py",
        "                lost.append(fault)\n                nursery.cancel_scope.cancel()",
        "                lost.append(fault)",
        BRIDGE,
    ),
    Planted(
        "a run relays a message to a broker that it has passed",
        "rumq/bridge/kernels/relay_run.py",
        "                    return UNDECIDED  # it has been there",
        "                    pass",
        RELAY_RUN,
    ),
    Planted(
        "a run sends a message again to a target that lost its session, unmarked",
        "rumq/bridge/kernels/relay_run.py",
        "if head & 8 and (qos == 0 or self.was_lost):",
        "if head & 8 and qos == 0:",
        RELAY_RUN,
    ),
    Planted(
        "a run puts the source's id between user properties and others",
        "rumq/bridge/kernels/relay_run.py",
        "or found.alias_at >= 0 or found.users_apart",
        "or found.alias_at >= 0",
        RELAY_RUN,
    ),
    Planted(
        "a run answers a message of QoS 1 as the target did, not as the source asked",
        "rumq/bridge/kernels/relay_run.py",
        "0x40 if held.qos == 1 else 0x50",
        "head",
        RELAY_RUN,
    ),
    Planted(
        "a run takes a remaining length in more bytes than it needs",
        "rumq/bridge/kernels/relay_run.py",
        "return i + 1 if data[i] or i == at else -1",
        "return i + 1",
        RELAY_RUN,
    ),
    Planted(
        "ids are not released where another broker answers at another address",
        "rumq/bridge/bridge.py",
        "            self._lost = set(SIDES)\n",
        "            self._lost = set()\n",
        "tests/bridge/test_remote_addresses.py",
    ),
    Planted(
        "once MQTT 5 was refused, 3.1.1 is asked with a new session",
        "rumq/bridge/side.py",
        "told = replace(options, version=version, clean_start=clean_start)",
        "told = replace(options, version=version)",
        "tests/bridge/test_side.py",
    ),
    Planted(
        "a bridge's state stays 1 when its process is gone",
        "rumq/bridge/counts.py",
        "is_fresh and bool(each.get",
        "bool(each.get",
        "tests/bridge/test_counts.py",
    ),
    Planted(
        "the other broker is told of the bridge's state where it is not to be",
        "rumq/process/bridge/bridge_settings.py",
        "will=None if bridge.notifications_local_only else maybe_will(bridge)",
        "will=maybe_will(bridge)",
        "tests/process/bridge/test_bridge_settings.py",
    ),
    # Consumer groups whose coordinator moves
    Planted(
        "values are kept for whoever held them once",
        "rumq/shards/admin/kept_values.py",
        "elif asked.holder != self._holder:",
        "elif asked.holder < 0:",
        MOVES,
    ),
    Planted(
        "a kept value is answered before it is committed",
        "rumq/shards/admin/kept_values.py",
        '            self._journal.when_committed(lsn, partial(once, ""))\n',
        '            once("")\n',
        MOVES,
    ),
    Planted(
        "kept values are taken over before they are committed",
        "rumq/shards/admin/kept_values.py",
        "        self._write([noted], lambda why: reply(done, KeptReply(why, holder)))\n",
        '        self._write([noted], lambda why: None)\n        reply(done, KeptReply("", holder))\n',
        MOVES,
    ),
    Planted(
        "a leader without the lease says that it leads",
        "rumq/shards/admin/kept_values.py",
        "self._reads.when_open(lambda: reply(done, KeptReply()))",
        "reply(done, KeptReply())",
        MOVES,
    ),
    Planted(
        "the turns of coordinators are counted anew by each leader",
        "rumq/shards/admin/kept_values.py",
        '1 + max(self._holder, int.from_bytes(self.values.get(HOLDERS, b""), "big"))',
        "1 + self._holder",
        MOVES,
    ),
    Planted(
        "a snapshot has kept values as they were when it began",
        "rumq/shards/admin/kept_values.py",
        "return (KeptValue(name, self.values[name]) for name in names if name in self.values)",
        "held = dict(self.values)\n        return (KeptValue(name, held[name]) for name in names)",
        KEPT_VALUES,
    ),
    Planted(
        "offsets are told by a coordinator that does not ask whether it is one",
        "rumq/kafka/nodes/shard_commits.py",
        "            await self._do(Confirm(self.turn), CONFIRM_SECONDS_MAX)\n",
        "            pass\n",
        MOVES,
    ),
    Planted(
        "a coordinator goes on after a write that nobody answered",
        "rumq/kafka/nodes/shard_commits.py",
        "            self.lost.set()\n            raise",
        "            raise",
        SHARD_COMMITS,
    ),
    Planted(
        "generations of all coordinators begin at 0",
        "rumq/kafka/nodes/group_seat.py",
        "    return turn % (1 << TURN_BITS) << GENERATION_BITS",
        "    return 0",
        MOVES,
    ),
    Planted(
        "a group that was forgotten begins with the generations that it had",
        "rumq/kafka/groups/coordinator.py",
        "            self._generation = max(self._generation, group.generation)\n",
        "",
        MOVES,
    ),
    Planted(
        "members who wait for a deposed coordinator are not told",
        "rumq/kafka/nodes/group_seat.py",
        "            groups.end()\n",
        "",
        MOVES,
    ),
    # Shared groups
    Planted(
        "after a kill of all shards the home of a group is not told what members have had",
        "router/recovery.py",
        "            share.recent.extend(had())\n",
        "            had()\n",
        "tests/cli/test_shards.py::test_what_members_of_shared_groups_have_had_does_not_come_again_after_a_kill",
    ),
]
