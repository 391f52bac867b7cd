"""`rumqd restore`: a data directory made from a backup, and verified.

Refuses to know how the files are laid out."""

import argparse
import json

from rumq.errors import DataDirectoryError, RumqError
from rumq.terminal.progress import Progress, add_progress_flag

ABOUT = """\
Make a new data directory from a backup, and verify every record. The backup is not changed.
"""
EXAMPLES = """\
examples:
  rumqd restore /mnt/backup/rumq --data /var/lib/rumq-new && rumqd run --data /var/lib/rumq-new

exit status: 0 done and sound; 1 damage was found and printed; 3 a directory cannot be used
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("backup", metavar="DIR", help="directory of the backup")
    parser.add_argument("-d", "--data", metavar="DIR", required=True, help="the new data directory")
    parser.add_argument("--json", action="store_true", help="JSON lines: what was restored, then each finding")
    add_progress_flag(parser)


def run(args: argparse.Namespace) -> int:
    from commitlog import StoreError
    from commitlog.read.backup import restore
    from rumq.cli.data.counted_files import all_bytes
    from rumq.cli.data.log_printing import print_verdicts

    try:
        backup, data = args.backup.rstrip("/"), args.data.rstrip("/")
        with Progress("restore", all_bytes(backup), "bytes", is_on=args.progress) as bar:
            count = restore(backup, data, bar.advance)
    except StoreError as fault:
        raise DataDirectoryError(fault.path, fault.problem) from None
    except PermissionError:
        raise
    except OSError as fault:
        raise RumqError(f"the restored directory is not finished: {fault}; remove it and try again") from None
    print(json.dumps({"files": count, "data": args.data}) if args.json else f"{count} files restored to {args.data}")
    return print_verdicts(args.data, as_json=args.json, progress=args.progress)
