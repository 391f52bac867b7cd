"""Faults of packing, as `tests.faults.planted` has those of the rest of the log."""

from tests.faults.planted import Planted

POWER = "tests/faults/test_power_loss.py"
PACKING = "tests/commitlog/write/test_segment_packing.py"
PACKED_LOGS = "tests/commitlog/write/test_packing_keeps_everything.py"
PACKED_SOURCE = "tests/commitlog/write/test_packed_source.py"
PACKER = "tests/shards/retention/test_segment_packer.py"

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
]
