"""`rumqd backup` and `rumqd restore`: complete copies of a data directory.

Refuses to know how the files are laid out."""

import argparse
import json
from datetime import UTC, datetime

from rumq.errors import DataDirectoryError, RumqError

BACKUP_LINE = "copy a data directory, with its broker on or off"
BACKUP_ABOUT = """\
Copy a data directory, with its broker on or off. The copy has everything that was acknowledged before the backup began:
messages, sessions, retained messages. A backup into the directory of an earlier one copies only new data; finished
segments become hard links if source and target are on one file system.
"""
BACKUP_EXAMPLES = """\
examples:
  rumqd backup /mnt/backup/rumq                  of ./rumq-data
  rumqd backup /mnt/backup/rumq --data /var/lib/rumq --json

exit status: 0 done; 3 one of the directories cannot be used; 1 any other error
"""
RESTORE_LINE = "make a data directory from a backup"
RESTORE_ABOUT = """\
Make a new data directory from a backup, and verify every record. The backup is not changed.
"""
RESTORE_EXAMPLES = """\
examples:
  rumqd restore /mnt/backup/rumq --data /var/lib/rumq-new && rumqd run --data /var/lib/rumq-new

exit status: 0 done and sound; 1 damage was found and printed; 3 a directory cannot be used
"""


def add_backup_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="DIR", help="target directory, created if missing")
    parser.add_argument("-d", "--data", metavar="DIR", default="rumq-data", help="[rumq-data]")
    parser.add_argument("--json", action="store_true", help="one JSON object")


def add_restore_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("backup", metavar="DIR", help="directory of the backup")
    parser.add_argument("-d", "--data", metavar="DIR", required=True, help="the new data directory")


def run_backup(args: argparse.Namespace) -> int:
    from commitlog import StoreError
    from commitlog.backup import Backup

    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    try:
        done = Backup(args.data.rstrip("/"), args.target.rstrip("/")).run(now)
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
        print(
            f"{done.copied} files copied ({done.bytes:,} bytes), {done.linked} linked, {done.kept} there already"
        )
    return 0


def run_restore(args: argparse.Namespace) -> int:
    from commitlog import StoreError
    from commitlog.backup import restore
    from rumq.cli.data.log_printing import print_verdicts

    try:
        count = restore(args.backup.rstrip("/"), args.data.rstrip("/"))
    except StoreError as fault:
        raise DataDirectoryError(fault.path, fault.problem) from None
    except PermissionError:
        raise
    except OSError as fault:
        raise RumqError(f"the restored directory is not finished: {fault}; remove it and try again") from None
    print(f"{count} files restored to {args.data}")
    return print_verdicts(args.data, as_json=False)
