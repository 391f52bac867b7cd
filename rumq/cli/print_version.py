"""`rumqd version`, and `rumqd --version`."""

from __future__ import annotations

import argparse

ABOUT = "Print the version of rumq, and whether its kernels are compiled.\n"
EXAMPLES = """\
examples:
  rumqd version
  rumqd version --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON object")


def run(args: argparse.Namespace) -> int:
    return print_version(as_json=args.json)


def print_version(*, as_json: bool) -> int:
    from rumq import version
    from rumq.compiled_modules import repair, stale_modules

    if as_json:
        import json
        import platform

        found = {
            "version": version.VERSION,
            "kernels": version.kernels(),
            "python": platform.python_version(),
            "stale": stale_modules(),
        }
        print(json.dumps(found))
    else:
        print(version.version_line())
        if stale := stale_modules():
            print(f"compiled of other sources than those here: {', '.join(stale)}; {repair()}")
    return 0
