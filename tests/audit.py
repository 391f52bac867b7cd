"""`python -m tests.audit`: is a vulnerability known of anything that is installed here with rumq? Asks pip-audit, which
asks PyPI's database: not in the gate, for it needs the network, and its answer changes from one day to the next.

Exit status: 0 none is known; 1 some are; 77 nothing could be asked, and why."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any, NamedTuple

NONE_KNOWN, SOME_KNOWN, SKIPPED = 0, 1, 77
SECONDS_MAX = 300


class Verdict(NamedTuple):
    status: int
    lines: list[str]


def judged(report: dict[str, Any], wanted: set[str]) -> Verdict:
    """report: pip-audit's JSON; wanted: rumq's own dependencies, of which not one may be left unasked"""
    found = [each for each in report.get("dependencies", []) if each.get("name") != "rumq"]
    vulnerable = [each for each in found if each.get("vulns")]
    if vulnerable:
        return Verdict(SOME_KNOWN, [line for each in vulnerable for line in lines_of(each)])
    skipped = {each["name"].lower(): each["skip_reason"] for each in found if "skip_reason" in each}
    unasked = sorted(skipped.keys() & wanted)
    if unasked or not found:
        reason = skipped[unasked[0]] if unasked else "it found no packages"
        return Verdict(SKIPPED, [f"skipped: {', '.join(unasked) or 'everything'} could not be asked about: {reason}"])
    return Verdict(NONE_KNOWN, [f"{len(found)} packages, no vulnerability known of them"])


def lines_of(package: dict[str, Any]) -> list[str]:
    who = f"{package['name']} {package.get('version', '')}"
    return [
        f"{who}: {each['id']}, fixed in {', '.join(each.get('fix_versions', [])) or 'no version'}"
        for each in package["vulns"]
    ]


def dependencies() -> set[str]:
    """The names of what rumq cannot run without. raises: PackageNotFoundError"""
    texts = [each for each in requires("rumq") or [] if "extra ==" not in each]
    return {text.split(">")[0].split("=")[0].split("[")[0].strip().lower() for text in texts}


def audit() -> Verdict:
    tool = shutil.which("pip-audit")
    if tool is None:
        return Verdict(SKIPPED, ["skipped: pip-audit is not installed: pip install pip-audit"])
    folders = [folder for folder in sys.path if folder and any(Path(folder).glob("*.dist-info"))]
    paths = [word for folder in folders for word in ("--path", folder)]
    command = [tool, "--format", "json", "--progress-spinner", "off", *paths]
    try:
        wanted = dependencies()
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
        report = json.loads(done.stdout)
    except PackageNotFoundError:
        return Verdict(SKIPPED, ["skipped: rumq is not installed in this environment: pip install -e ."])
    except subprocess.TimeoutExpired:
        return Verdict(SKIPPED, [f"skipped: pip-audit had no answer within {SECONDS_MAX} s"])
    except ValueError:
        words = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        return Verdict(SKIPPED, [f"skipped: pip-audit failed: {words[0]}"])
    return judged(report, wanted)


if __name__ == "__main__":
    status, said = audit()
    print("\n".join(said))
    sys.exit(status)
