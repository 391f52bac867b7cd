"""Types of settings for the table: each carries the description, unit and bounds of a key."""

from msgspec import Meta

KIB, MIB, GIB = 2**10, 2**20, 2**30
DAY_SECONDS = 86_400


def number(line: str, unit: str, least: float, most: float) -> Meta:
    """A number within inclusive bounds. line: the description in config.toml"""
    return Meta(ge=least, le=most, description=line, extra={"unit": unit})


def text(line: str, most: int) -> Meta:
    """Text of 1 to `most` characters."""
    return Meta(min_length=1, max_length=most, description=line, extra={"unit": "text"})


def maybe_text(line: str) -> Meta:
    """Text that may be empty, mostly the path of a file."""
    return Meta(max_length=4096, description=line, extra={"unit": "maybe text"})


def choice(line: str) -> Meta:
    """A value of the type, which lists what is allowed."""
    return Meta(description=line, extra={"unit": ""})


def listed(line: str, of: str) -> Meta:
    """A list. of: its elements, in words"""
    return Meta(description=line, extra={"unit": f"a list of {of}"})
