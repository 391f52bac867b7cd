"""Faults of packing, as `tests.faults.planted` has those of the rest of the log."""

from tests.faults.planted import Planted

POWER = "tests/faults/test_power_loss.py"
PACKING = "tests/commitlog/write/test_segment_packing.py"
PACKED_LOGS = "tests/commitlog/write/test_packing_keeps_everything.py"
PACKED_SOURCE = "tests/commitlog/write/test_packed_source.py"
PACKER = "tests/shards/retention/test_segment_packer.py"

REFILL = "tests/commitlog/replica/tail/test_refill.py"
COPY_PACKING = "tests/commitlog/log/test_copy_packing.py"
COPY_PACKER = "tests/cluster/node/upkeep/test_copy_packer.py"
PACKED_COPIES = "tests/shards/replication/test_packed_copies.py"

PLANTED = [
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
    # Copies
    Planted(
        "bytes of a packed file are taken for those of the file before",
        "commitlog/replica/differences.py",
        "    return 0 not in (our.salt, their.salt) and our.salt != their.salt\n",
        "    return False\n",
        REFILL,
    ),
    Planted(
        "a segment that is sent again takes its place before it is synced",
        "commitlog/replica/tail/refill.py",
        "        tail.sync()\n        if files",
        "        if files",
        REFILL,
    ),
    Planted(
        "a segment that is sent again counts before all of it is there",
        "commitlog/replica/tail/refill.py",
        "self._tail is not None and self.next_lsn >= self.end_lsn",
        "self._tail is not None",
        REFILL,
    ),
    Planted(
        "a block of a packed file is sent as one of the file before",
        "commitlog/replica/block_reader.py",
        "    if salt and salt_now",
        "    if not salt and salt_now",
        REFILL,
    ),
    Planted(
        "a copy is cut at a byte of another file",
        "commitlog/replica/mirror_partition.py",
        "        if name and salt:\n",
        "        if not name and salt:\n",
        REFILL,
    ),
    Planted(
        "a copy packs what is not committed",
        "commitlog/log/copy_packing.py",
        "            if state.is_done and state.end_lsn <= below and",
        "            if state.is_done and",
        COPY_PACKING,
    ),
    Planted(
        "an edit that names no file is true of the packed one",
        "commitlog/replica/copy_segments.py",
        "        if found.found or is_unsalted or len(edits)",
        "        if found.found or len(edits)",
        COPY_PACKING,
    ),
    Planted(
        "a copy's edits do not say which file they mean",
        "commitlog/replica/copy_segments.py",
        '"end_lsn": one.end_lsn, "stop": one.stop, "salt": one.salt}\n',
        '"end_lsn": one.end_lsn, "stop": one.stop}\n',
        COPY_PACKING,
    ),
    Planted(
        "a digest of records depends on their chunks",
        "commitlog/read/record_digest.py",
        "[self._frame_bytes + at for at",
        "[at for at",
        "tests/commitlog/read/test_record_digest.py",
    ),
    Planted(
        "a copy is packed under a claimant that is sent it",
        "rumq/cluster/node/log_copies.py",
        "        return not self._served and (",
        "        return (",
        COPY_PACKER,
    ),
    Planted(
        "a packed file is put in place after a node went away",
        "rumq/cluster/node/upkeep/copy_packer.py",
        "        if not self.may_pack:\n            packing.discard()\n",
        "        if False:\n            packing.discard()\n",
        COPY_PACKER,
    ),
    Planted(
        "a node of an earlier version counts as one that knows packed copies",
        "rumq/cluster/replication/packing_members.py",
        "for each in view.nodes if each.packs}",
        "for each in view.nodes}",
        "tests/cluster/replication/test_packing_members.py",
    ),
    Planted(
        "segments are packed that a change of leaders has just ended",
        "rumq/cluster/replication/packing_members.py",
        "self._since == inf or epoch != self._epoch",
        "self._since == inf",
        "tests/cluster/replication/test_packing_members.py",
    ),
    Planted(
        "a leader packs what no majority has",
        "rumq/shards/replication/replication.py",
        "        return min(partition.committed_lsn, self.core.committed(copied.source.key))\n",
        "        return partition.committed_lsn\n",
        PACKED_COPIES,
    ),
    Planted(
        "a leader packs what it is sending by its bytes",
        "rumq/shards/replication/replication.py",
        "not is_over or copied.source.lagging or",
        "not is_over or",
        PACKED_COPIES,
    ),
    Planted(
        "a follower is sent the rest of a file that was packed",
        "rumq/shards/replication/feeding/feeder.py",
        "        if at >= 0 and position and self._salt not in (0, ours[at].salt):\n",
        "        if False:\n",
        "tests/shards/replication/feeding/test_feeder.py",
    ),
]
