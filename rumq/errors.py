"""What can go wrong that is not our bug, and whose fault it is. The tree:

    RumqError
    ├── ConfigError        the operator's: every faulty setting at once, each with the way out (exit status 2)
    ├── DataDirectoryError the operator's: another broker holds it, or it cannot be used (exit status 3)
    └── ClientError        what a user of rumq.client meets
        ├── Refused            the broker answered no; carries its reason code
        └── ConnectionLost     the network, or the broker, went away

The log's errors are `commitlog.LogError`, the router's `router.RouterError`. Anything else is a bug of ours.
Errors are sentences for users. Pickle rebuilds all of them from plain arguments.
"""

from typing import NamedTuple


class RumqError(Exception):
    """The root of what rumq itself raises on purpose."""


class Fault(NamedTuple):
    """One refused setting. `problem` ends the sentence: what is allowed, or what to write instead."""

    source: str  # the file, "environment RUMQ_LOG_DURABILITY", "--set", or the flag
    key: str  # dotted, "log.durability"; empty where the whole source is at fault
    value: str  # as TOML; empty where the value is not what is wrong
    problem: str

    def __str__(self) -> str:
        setting = f"{self.key} = {self.value}" if self.value else self.key
        return ": ".join(part for part in (self.source, setting, self.problem) if part)


class ConfigError(RumqError):
    """The settings were refused; `faults` has every reason, in the order of their sources."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__(*faults)
        self.faults = faults

    def __str__(self) -> str:
        return "\n".join(map(str, self.faults))


class DataDirectoryError(RumqError):
    """The data directory cannot be used. path: as the operator wrote it; problem: why, and the way out."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path, self.problem = path, problem

    def __str__(self) -> str:
        return f"data directory {self.path}: {self.problem}"


class ClientError(RumqError):
    """What a client of rumq meets and can act on."""


class Refused(ClientError):
    """The broker said no. what: what it refused; reason_code: MQTT 5.0, 2.4, or the 3.1.1 return code."""

    def __init__(self, what: str, reason_code: int, reason: str) -> None:
        super().__init__(what, reason_code, reason)
        self.what, self.reason_code, self.reason = what, reason_code, reason

    def __str__(self) -> str:
        return f"the broker refused {self.what}: 0x{self.reason_code:02X} {self.reason}"


class ConnectionLost(ClientError):
    """The connection ended without our DISCONNECT. What was not acknowledged may or may not have arrived."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return f"no connection: {self.why}"
