"""What can go wrong with the control plane, and whose fault it is. All are sentences for the operator.

ControlError
├── Unreachable      nobody answered a question; nothing was changed by it
├── OutcomeUnknown   a change was sent and no answer came: it may be, or may yet become, in force
├── LeaseLost        this node counts as dead until it announces itself again
├── NameTaken        another node lives under this name
└── ControlRefused   the settings, the directory and the cluster do not belong together, or etcd says no
"""

from __future__ import annotations

from rumq.errors import RumqError


class ControlError(RumqError):
    """The root of this floor."""


class Unreachable(ControlError):
    """No endpoint answered. why: of each endpoint"""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return f"the control plane does not answer: {self.why}"


class OutcomeUnknown(ControlError):
    """A compare-and-swap got no answer. It is never sent again by itself: see `ControlPlane.settle`."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return f"a change was sent to the control plane, and whether it is in force is unknown: {self.why}"


class LeaseLost(ControlError):
    """The lease has expired, or the store forgot it."""

    def __str__(self) -> str:
        return "the lease of this node has expired: it announces itself again"


class NameTaken(ControlError):
    """Two nodes of one name. mine, other: "id at host:port, incarnation" """

    def __init__(self, name: str, mine: str, other: str) -> None:
        super().__init__(name, mine, other)
        self.name, self.mine, self.other = name, mine, other

    def __str__(self) -> str:
        return (
            f"the node name {self.name!r} is in use by {self.other}, which is alive; this node is {self.mine}: "
            "stop the other one, or give this one another cluster.node"
        )


class ControlRefused(ControlError):
    """Something does not belong together, or is not allowed. why: what was seen, and the way out"""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return self.why
