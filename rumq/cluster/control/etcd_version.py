"""Which versions of etcd have faults that a cluster can meet. Rules C1 to C3 live with them; the operator is told.

Sources: etcd's change logs of 3.4, 3.5 and 3.6, and the issues named."""

from __future__ import annotations

from rumq.cluster.control.errors import ControlRefused

OLDEST = (3, 4, 0)  # before it the gateway has no /v3
FirstGood = dict[tuple[int, ...], tuple[int, ...]]
GOOD: FirstGood = {(3, 4): (3, 4, 42), (3, 5): (3, 5, 28), (3, 6): (3, 6, 9)}

# What can happen; etcd's issue; the first version without it, by branch.
FAULTS: list[tuple[str, str, FirstGood]] = [
    ("a read after a pause may be stale", "#20418", GOOD),
    (
        "a leader that was paused may revoke leases of live nodes",
        "#15247",
        {(3, 4): (3, 4, 31), (3, 5): (3, 5, 13)},
    ),
    ("a watch may lose events", "#17529", {(3, 4): (3, 4, 31), (3, 5): (3, 5, 13)}),
]


def numbers_of(version: str) -> tuple[int, ...]:
    """ "3.5.28-rc.0" is (3, 5, 28); () for what is no version."""
    parts = version.partition("-")[0].partition("+")[0].split(".")
    return tuple(map(int, parts)) if len(parts) == 3 and all(part.isdecimal() for part in parts) else ()


def good_versions() -> str:
    return ", ".join(".".join(map(str, version)) for version in GOOD.values())


def known_faults(version: str) -> list[str]:
    """Sentences; none for a version that is good, unknown or newer.

    raises: ControlRefused, for one that cannot be used"""
    numbers = numbers_of(version)
    if numbers and numbers < OLDEST:
        raise ControlRefused(
            f"etcd {version} is too old for a cluster: upgrade it to one of {good_versions()}, or newer"
        )
    found = []
    for what, issue, fixed in FAULTS:
        first = fixed.get(numbers[:2])
        if first and numbers < first:
            found.append(f"{what} (etcd issue {issue}, fixed in {'.'.join(map(str, first))})")
    return found
