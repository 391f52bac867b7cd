"""`rumqd backup`: a complete copy of a data directory.

Refuses to know how the files are laid out."""

import argparse
import json
from datetime import UTC, datetime

from rumq.errors import DataDirectoryError, RumqError
from rumq.terminal.progress import Progress, add_progress_flag

ABOUT = """\
Copy a data directory, with its broker on or off. The copy has everything that was acknowledged before the backup began:
messages, sessions, retained messages. A backup into the directory of an earlier one copies only new data; finished
segments become hard links if source and target are on one file system.
"""
EXAMPLES = """\
examples:
  rumqd backup /mnt/backup/rumq                  of ./rumq-data
  rumqd backup /mnt/backup/rumq --data /var/lib/rumq --json

exit status: 0 done; 3 one of the directories cannot be used; 1 any other error
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="DIR", help="target directory, created if missing")
    parser.add_argument("-d", "--data", metavar="DIR", default="rumq-data", help="[rumq-data]")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    add_progress_flag(parser)


def run(args: argparse.Namespace) -> int:
    from commitlog import StoreError
    from commitlog.read.backup import Backup
    from rumq.cli.data.counted_files import all_bytes

    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    try:
        data = args.data.rstrip("/")
        with Progress("backup", all_bytes(data), "bytes", is_on=args.progress) as bar:
            done = Backup(data, args.target.rstrip("/"), advance=bar.advance).run(now)
    except FileNotFoundError:
        raise DataDirectoryError(args.data, "no data directory of rumq: name one with --data") from None
    except StoreError as fault:
        raise DataDirectoryError(fault.path, fault.problem) from None
    except PermissionError:
        raise
    except OSError as fault:
        raise RumqError(f"the backup is not finished: {fault}; run it again") from None
    if args.json:
        print(json.dumps(done._asdict()))
    else:
        for name, next_lsn in done.partitions.items():
            print(f"{name}: up to lsn {next_lsn}")
        print(f"{done.copied} files copied ({done.bytes:,} bytes), {done.linked} linked, {done.kept} there already")
    return 0
