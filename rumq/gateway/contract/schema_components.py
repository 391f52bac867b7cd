"""The schemas of a description, put so that generators of clients can read them, whatever they describe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

REFERENCE = "$ref"


def readable_by_generators(document: dict[str, Any]) -> dict[str, Any]:
    """The same OpenAPI document with equivalent schemas.

    Schemas that no path refers to are left out: requests whose fields are parameters. A name is the type's own,
    without its module, unless two types that are left have the same. A tuple says how many items it has
    without `items: false`.

    raises: ValueError: two types of one name are left, of which a generator would lose one"""
    schemas = document["components"]["schemas"]
    used: set[str] = set()
    waiting = list(references(document["paths"]))
    while waiting:
        if (name := waiting.pop()) not in used:
            used.add(name)
            waiting += references(schemas[name])
    names = {name: name.rpartition(".")[2] for name in schemas if name in used}
    if len(set(names.values())) < len(names):
        raise ValueError(
            f"schemas of one name: {sorted(name for name in names if '.' in name)}; rename one of the types"
        )
    document["components"]["schemas"] = {short: schemas[name] for name, short in names.items()}
    rewrite(document, names)
    return document


def references(part: Any) -> Iterator[str]:
    for key, each in items(part):
        if key == REFERENCE:
            yield name_of(each)
        else:
            yield from references(each)


def rewrite(part: Any, names: dict[str, str]) -> None:
    """In place. A part may be in the document several times: it is the same after a second rewriting."""
    if isinstance(part, dict):
        if isinstance(reference := part.get(REFERENCE), str):
            name = name_of(reference)
            part[REFERENCE] = reference.removesuffix(name) + names.get(name, name)
        close_tuple(part)
    for _, each in items(part):
        rewrite(each, names)


def close_tuple(schema: dict[str, Any]) -> None:
    """`maxItems` says already that there are no more items than `prefixItems`."""
    places = schema.get("prefixItems")
    if places is None or schema.get("items") is not False:
        return
    del schema["items"]
    schema["minItems"] = schema["maxItems"] = len(places)
    if all(each == places[0] for each in places):
        schema["items"] = schema.pop("prefixItems")[0]


def items(part: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(part, dict):
        yield from part.items()
    elif isinstance(part, list | tuple):
        yield from enumerate(part)


def name_of(reference: str) -> str:
    return reference.rpartition("/")[2]
