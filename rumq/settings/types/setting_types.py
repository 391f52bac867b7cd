"""Types of settings for the table: each carries the sentence, what a change applies to, unit and bounds of a key."""

from typing import Any, Final, Literal, TypeAlias

from msgspec import Meta

KIB, MIB, GIB = 2**10, 2**20, 2**30
DAY_SECONDS = 86_400
FLIGHT_PORT, GATEWAY_PORT, GRPC_PORT, KAFKA_PORT = 8815, 8080, 8820, 9092

Applies: TypeAlias = Literal["live", "new connections", "another listener", "restart"]
LIVE: Final = "live"  # a reload puts it into force, also for clients that are connected
NEW_CONNECTIONS: Final = "new connections"  # a reload puts it into force, for clients that connect from then on
ANOTHER_LISTENER: Final = "another listener"  # a reload closes the old listener and opens another one
RESTART: Final = "restart"


def number(line: str, applies: Applies, unit: str, least: float, most: float, *, usual: int | None = None) -> Meta:
    """A number within inclusive bounds. line: the sentence in config.toml

    usual: what a process of its own takes, where the default is that there is none"""
    return Meta(ge=least, le=most, description=line, extra=extra(unit, applies) | {"usual": usual})


def text(line: str, applies: Applies, most: int) -> Meta:
    """Text of 1 to `most` characters."""
    return Meta(min_length=1, max_length=most, description=line, extra=extra("text", applies))


def maybe_text(line: str, applies: Applies) -> Meta:
    """Text that may be empty, mostly the path of a file."""
    return Meta(max_length=4096, description=line, extra=extra("maybe text", applies))


def choice(line: str, applies: Applies) -> Meta:
    """A value of the type, which lists what is allowed."""
    return Meta(description=line, extra=extra("", applies))


def listed(line: str, applies: Applies, of: str) -> Meta:
    """A list. of: its elements, in words"""
    return Meta(description=line, extra=extra(f"a list of {of}", applies))


def extra(unit: str, applies: Applies) -> dict[str, Any]:
    """What msgspec has no word for."""
    return {"unit": unit, "applies": applies}
