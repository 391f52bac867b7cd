"""The page of the REST interface, made from its OpenAPI description."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rumq.gateway.contract.openapi import description
from rumq.version import VERSION

HEAD = """\
# REST

Every endpoint of the gateway, from the description that it serves at `/api/v1/openapi.json` (OpenAPI 3.1).
[The gateway](../gateway.md) has tokens, roles and limits.
"""


def page() -> str:
    made = description(VERSION)
    return "\n".join([HEAD, *endpoints(made["paths"]), *schemas(made["components"]["schemas"])])


def endpoints(paths: dict[str, Any]) -> Iterator[str]:
    yield "## Endpoints\n"
    for path, methods in paths.items():
        for method, each in methods.items():
            yield f"### {method.upper()} {path}\n"
            yield f"{sentence(each['summary'])} {each.get('description', '')}\n"
            if taken := each.get("requestBody"):
                yield f"Body: {contents(taken)}\n"
            if given := each.get("parameters"):
                yield "| parameter | type | meaning |\n|---|---|---|"
                for one in given:
                    name = f"`{one['name']}`" + (" (required)" if one["required"] else "")
                    yield f"| {name} | {kind(one['schema'])} | {cell(one.get('description', ''))} |"
                yield ""
            codes = [f"{code} {contents(answer)}" for code, answer in each["responses"].items() if code < "400"]
            others = ", ".join(code for code in each["responses"] if code >= "400")
            yield f"Answers: {'; '.join(codes)}{f'; faults {others}' if others else ''}.\n"


def schemas(components: dict[str, Any]) -> Iterator[str]:
    yield "## Objects\n"
    for name, schema in sorted(components.items()):
        if "properties" not in schema:
            continue
        yield f"### {short(name)} {{ #{anchor(name)} }}\n"
        if about := schema.get("description", ""):
            yield f"{cell(about)}\n"
        yield "| field | type | meaning |\n|---|---|---|"
        for key, each in schema["properties"].items():
            yield f"| `{key}` | {kind(each)} | {cell(each.get('description', ''))} |"
        yield ""


def short(name: str) -> str:
    """The class; two of one name have their modules before them in the description."""
    return name.rpartition(".")[2]


def anchor(name: str) -> str:
    return "object-" + name.lower().replace(".", "-")


def contents(part: dict[str, Any]) -> str:
    """The types of a body or an answer, with the object's name."""
    found = part.get("content", {})
    if not found:
        return cell(part.get("description", ""))
    names = {kind(each["schema"]) for each in found.values() if "schema" in each}
    return f"{' or '.join(sorted(names)) or 'text'} ({', '.join(f'`{name}`' for name in found)})"


def kind(schema: dict[str, Any] | bool) -> str:
    """A type in few words; an object is a link to its table. True stands for anything, as in the standard."""
    if isinstance(schema, bool):
        return "any"
    if reference := schema.get("$ref"):
        name = reference.rpartition("/")[2]
        return f"[{short(name)}](#{anchor(name)})"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    for joined in ("anyOf", "oneOf"):
        if joined in schema:
            return " or ".join(kind(each) for each in schema[joined])
    if schema.get("type") == "array":
        return f"list of {kind(schema.get('items', {}))}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {kind(schema['additionalProperties'])}"
    bounds = [
        f"{sign} {schema[key]}"
        for key, sign in (("minimum", "≥"), ("maximum", "≤"), ("maxLength", "length ≤"))
        if key in schema
    ]
    return ", ".join([str(schema.get("type", "any")), *bounds])


def sentence(text: str) -> str:
    text = text.strip()
    return cell(text[:1].upper() + text[1:].rstrip(".") + ".")


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
