"""The documentation of the REST interface as one page of HTML, made from its OpenAPI description and nothing else.

No script, nothing of other hosts, readable without a token: docs/reference/gateway.md, "REST"."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from rumq.gateway.contract.openapi import COMMON
from rumq.gateway.contract.problems import KINDS

POLICY = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
HEADERS = {
    "cache-control": "no-cache", "content-security-policy": POLICY, "x-content-type-options": "nosniff",
    "x-frame-options": "DENY", "referrer-policy": "no-referrer",
}  # fmt: skip
STYLE = "../../page/docs.css"
SCHEMA = "#/components/schemas/"
ACTIONS, REST = "/api/v1/actions/", "/api/v1/"
GROUPS = ("Queries", "Changes", "Actions", "Health")
Schema = Mapping[str, Any]


def docs_page(document: Schema) -> str:
    """document: of `rumq.gateway.contract.openapi`"""
    operations = [
        (method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    by_group: dict[str, list[tuple[str, str, Schema]]] = {name: [] for name in GROUPS}
    for each in sorted(operations, key=lambda each: each[1]):
        by_group[group_of(each[0], each[1])].append(each)
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>REST interface of rumq</title>',
        f'<link rel="stylesheet" href="{STYLE}"></head><body>',
        f"<header><h1>REST interface of rumq {text(document['info']['version'])}</h1>",
        f"<p>{text(document['info']['description'])} Give a token in the header <code>Authorization: Bearer "
        'rumq_...</code>. For generators of clients: <a href="openapi.json">openapi.json</a>.</p></header>',
        "<nav>",
        *(contents(name, [each[2]["operationId"] for each in some]) for name, some in by_group.items()),
        contents("Problems", KINDS),
        contents("Types", document["components"]["schemas"], "type-"),
        "</nav><main>",
    ]
    for name, some in by_group.items():
        parts += [f"<h2>{text(name)}</h2>", *(operation_of(*each) for each in some)]
    parts += [
        "<h2>Problems</h2><p>Any request may be answered with one of these, as application/problem+json (RFC 9457):</p>"
    ]
    parts += [fields_table(document["components"]["schemas"]["Problem"]), *map(problem_of, KINDS)]
    parts += ["<h2>Types</h2>"]
    parts += [type_of(name, schema) for name, schema in sorted(document["components"]["schemas"].items())]
    return "".join([*parts, "</main></body></html>\n"])


def group_of(method: str, path: str) -> str:
    if path.startswith(ACTIONS):
        return "Actions"
    if not path.startswith(REST):
        return "Health"
    return "Queries" if method == "get" else "Changes"


def contents(name: str, ids: Iterable[str], prefix: str = "") -> str:
    links = " ".join(f'<a href="#{text(prefix + each)}">{text(each)}</a>' for each in sorted(ids))
    return f"<p><strong>{text(name)}</strong> {links}</p>"


def operation_of(method: str, path: str, operation: Schema) -> str:
    name = operation["operationId"]
    parts = [
        f'<section id="{text(name)}"><h3><code>{method.upper()} {text(path)}</code></h3>',
        f"<p>{text(operation['summary'])}. {text(operation['description'])}</p>",
        f"<pre>{text(example(method, path, operation))}</pre>",
    ]
    if parameters := operation.get("parameters"):
        rows = [
            (each["name"], {**each["schema"], "description": each.get("description", "")}, each["required"])
            for each in parameters
        ]
        parts.append("<h4>Parameters</h4>" + table(rows))
    for kind, given in operation.get("requestBody", {}).get("content", {}).items():
        parts.append(f"<h4>Body: {text(kind)}</h4><p>{kind_of(given.get('schema', {}))}</p>")
    parts.append("<h4>Answers</h4><table>")
    for status, answer in operation["responses"].items():
        if answer["description"] == COMMON.get(status):
            continue  # as of any request: under "Problems"
        kinds = ", ".join(
            f"{text(kind)} {kind_of(given['schema'])}" if given.get("schema") else text(kind)
            for kind, given in answer.get("content", {}).items()
        )
        parts.append(f"<tr><th>{text(status)}</th><td>{text(answer['description'])}</td><td>{kinds}</td></tr>")
    return "".join([*parts, "</table></section>"])


def example(method: str, path: str, operation: Schema) -> str:
    """A line of curl with what the request needs."""
    needed = [each["name"] for each in operation.get("parameters", ()) if each["required"] and each["in"] == "query"]
    query = "?" + "&".join(f"{name}=..." for name in needed) if needed else ""
    words = ["curl"]
    if operation.get("security"):
        words.append('-H "Authorization: Bearer $TOKEN"')
    if method != "get":
        words.append(f"-X {method.upper()}")
    if "requestBody" in operation:
        words.append("-H 'Content-Type: application/json' -d '{...}'")
    return " ".join([*words, f"'http://localhost:8080{path}{query}'"])


def problem_of(name: str) -> str:
    kind = KINDS[name]
    return f'<section id="{text(name)}"><h3>{kind.status} {text(kind.title)}</h3><p>{text(kind.meaning)}</p></section>'


def type_of(name: str, schema: Schema) -> str:
    about = f"<p>{text(schema['description'])}</p>" if "description" in schema else ""
    return f'<section id="type-{text(name)}"><h3>{text(name)}</h3>{about}{fields_table(schema)}</section>'


def fields_table(schema: Schema) -> str:
    """Of an object; what is none is one line."""
    if "properties" not in schema:
        return f"<p>{kind_of(schema)}</p>"
    required = schema.get("required", ())
    return table([(name, each, name in required) for name, each in schema["properties"].items()])


def table(rows: Sequence[tuple[str, Schema, bool]]) -> str:
    parts = ["<table>"]
    for name, schema, is_required in rows:
        needed = " <em>required</em>" if is_required else ""
        parts.append(
            f"<tr><th><code>{text(name)}</code></th><td>{kind_of(schema)}{bounds_of(schema)}{needed}</td>"
            f"<td>{text(schema.get('description', ''))}</td></tr>"
        )
    return "".join([*parts, "</table>"])


def kind_of(schema: Schema) -> str:
    """The type in words, with links to types that have a name."""
    if reference := schema.get("$ref"):
        name = reference.removeprefix(SCHEMA)
        return f'<a href="#type-{text(name)}">{text(name)}</a>'
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(kind_of(each) for each in schema[key])
    if "enum" in schema:
        return " or ".join(f"<code>{text(json.dumps(each))}</code>" for each in schema["enum"])
    kind = schema.get("type", "any value")
    if kind == "array" and schema.get("items"):
        return f"list of {kind_of(schema['items'])}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return f"object of {kind_of(schema['additionalProperties'])}"
    return text(kind)


def bounds_of(schema: Schema) -> str:
    found = [text(schema["x-unit"])] if schema.get("x-unit") else []
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        found.append(f"{low} to {high}")
    if (length := schema.get("maxLength")) is not None:
        found.append(f"at most {length} characters")
    if schema.get("default") not in (None, ""):
        found.append(f"default {text(json.dumps(schema['default']))}")
    return f" ({', '.join(found)})" if found else ""


def text(value: object) -> str:
    return escape(str(value))
