"""What is said of an endpoint that is not in the table of the admin interface. The tables are beside this file."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

import msgspec

from rumq.admin import requests as q
from rumq.admin.operations import Role
from rumq.admin.topic_names import Tells

PATH_PARAMETER = re.compile(r"\{(\w+)(?::path)?\}")  # "path": may have slashes, escaped or not


class Endpoint(NamedTuple):
    """path: as Starlette has it, `{label}` or `{topic:path}` for parameters in it, which are fields of the request

    role: "any": every token may ask; None: everybody may, without a token
    tells: which topics its answer names, as of an operation
    body: what the body has, as JSON, where the request is parameters; without it the request of a POST is its body
    created: what a 201 says; empty: it makes nothing"""

    method: str
    path: str
    name: str
    summary: str
    role: Role | Literal["any"] | None
    answer: type[msgspec.Struct]
    tells: Tells
    request: type[q.Request] = q.Nothing
    body: type[msgspec.Struct] | None = None
    created: str = ""

    @property
    def described_path(self) -> str:
        """As OpenAPI has it."""
        return PATH_PARAMETER.sub(r"{\1}", self.path)

    @property
    def in_path(self) -> frozenset[str]:
        """Fields of the request that its path has."""
        return frozenset(PATH_PARAMETER.findall(self.path))
