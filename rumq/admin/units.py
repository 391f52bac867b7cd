"""Descriptions of fields: a line, and the unit of a number. The OpenAPI description has both."""

from __future__ import annotations

from msgspec import Meta


def field(line: str, unit: str = "") -> Meta:
    """unit: such as "bytes", "records", "seconds"; empty: a text, a flag, or a number without unit"""
    return Meta(description=line, extra_json_schema={"x-unit": unit} if unit else None)


def number(line: str, unit: str, least: int, most: int) -> Meta:
    """A number of a request, within inclusive bounds."""
    return Meta(ge=least, le=most, description=line, extra_json_schema={"x-unit": unit} if unit else None)


def text(line: str, most: int = 65_535, least: int = 0) -> Meta:
    """Text of a request, of so many characters."""
    return Meta(min_length=least, max_length=most, description=line)
