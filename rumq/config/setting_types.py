"""The words that the table of settings is made of: kinds of keys, each with its line, its unit and its bounds."""

from msgspec import Meta

KIB, MIB, GIB = 2**10, 2**20, 2**30
DAY_SECONDS = 86_400


def number(line: str, unit: str, least: float, most: float) -> Meta:
    """A key's line, its unit, and its bounds, both allowed."""
    return Meta(ge=least, le=most, description=line, extra={"unit": unit})


def text(line: str, most: int) -> Meta:
    """The line of a key that takes 1 to `most` characters."""
    return Meta(min_length=1, max_length=most, description=line, extra={"unit": "text"})


def maybe_text(line: str) -> Meta:
    """The line of a key that takes text, mostly the path of a file, or nothing."""
    return Meta(max_length=4096, description=line, extra={"unit": "maybe text"})


def choice(line: str) -> Meta:
    """The line of a key whose type lists what is allowed."""
    return Meta(description=line, extra={"unit": ""})


def listed(line: str, of: str) -> Meta:
    """The line of a key that takes a list; of: what of."""
    return Meta(description=line, extra={"unit": f"a list of {of}"})
