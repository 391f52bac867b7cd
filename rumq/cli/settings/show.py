"""`rumqd show settings`: each setting in force, with its source and what the table says of it."""

from __future__ import annotations

import argparse
import json
import sys

from rumq.cli.setting_flags import add_setting_flags, loaded_settings

ABOUT = """\
Show settings as they would be in force with this file, environment and flags: name, value, meaning, unit and bounds,
where the value came from, and whether a change of it needs a restart.
"""
EXAMPLES = """\
examples:
  rumqd show settings                            all of them
  rumqd show settings linger                     those with "linger" in their names
  rumqd show settings 'mqtt.*_max' --config config.toml
  rumqd show settings retention --json

exit status: 0 done; 2 invalid settings, or no setting of that name
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=("settings",))
    parser.add_argument(
        "pattern", metavar="PATTERN", nargs="?", default="", help="part of their names, or a pattern with * and ? [all]"
    )
    add_setting_flags(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object: each setting by its name")
    parser.add_argument(
        "--page", action="store_true", help="print the reference page, docs/reference/settings.md, instead"
    )


def run(args: argparse.Namespace) -> int:
    from rumq.settings import listing, reference_page

    if args.page:
        print(reference_page.page(), end="")
        return 0
    loaded = loaded_settings(args)
    found = listing.rows(loaded, args.pattern)
    if not found:
        near = listing.nearest(loaded, args.pattern)
        hint = f"did you mean {near}?" if near else "rumqd show settings lists all"
        print(f"rumqd: no setting matches {args.pattern}; {hint}", file=sys.stderr)
        return 2
    print(json.dumps(listing.as_rows(found)) if args.json else listing.as_text(found))
    return 0
