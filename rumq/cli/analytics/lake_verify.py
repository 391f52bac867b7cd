"""`rumqd lake verify`: print the findings, one per line."""

from __future__ import annotations

import json

from rumq.cli.data.log_printing import open_log
from rumq.errors import RumqError


def print_findings(place: str, data: str | None, *, as_json: bool) -> int:
    """Print every finding; status 1 if a record is lost, duplicated or different. raises: RumqError"""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise RumqError("Parquet needs pyarrow and numpy: pip install pyarrow numpy") from None
    from rumq.lake.errors import LakeError
    from rumq.lake.folder import folder_at
    from rumq.lake.manifest import NAME
    from rumq.lake.parquet.verify import verify

    folder = folder_at(place)
    if folder.size(NAME) < 0:
        raise LakeError(place, f"it has no {NAME}: no lake of rumq, or nothing was exported yet")
    wrong = 0
    for finding in verify(folder, open_log(data) if data is not None else None):
        wrong += finding.severity == "error"
        if as_json:
            print(json.dumps(finding._asdict()))
        else:
            print(f"{finding.severity}: {finding.where}: {finding.what}")
    if not as_json:
        print("something does not fit, see above" if wrong else "sound: the lake has every record once")
    return 1 if wrong else 0
