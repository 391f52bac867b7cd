"""The OpenAPI 3.1 description of the REST interface, made from the tables of operations and endpoints."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from rumq.admin.operations import TABLE, Operation
from rumq.gateway.contract.endpoint import Endpoint
from rumq.gateway.contract.endpoints import ENDPOINTS
from rumq.gateway.contract.messages import Message, RefusedMessages
from rumq.gateway.contract.problems import Problem, QueueFullProblem
from rumq.gateway.contract.queue_messages import PushMessage, RefusedPushes
from rumq.gateway.contract.schema_components import readable_by_generators
from rumq.gateway.http.media_types import EVENTS, JSON, LINES, MSGPACK, PROBLEM_JSON

ROWS_MAX = 200  # of an answer over HTTP
OF_RECORDS = ("Fetch", "TopicFetch")  # requests for records, which are more than rows of a page
REFS = "#/components/schemas/{name}"
PROBLEM = {"$ref": REFS.format(name="Problem")}
COMMON = {
    "400": "the request is malformed, or the broker refuses it", "401": "no token, or one that is not known",
    "403": "the roles of the token do not allow it, or the rules let its user read nothing of what is asked",
    "404": "there is no such client, stream, token or user",
    "413": "the body is too large", "421": "the header Host names none of gateway.hosts",
    "429": "too many requests of this address wait for their refusal", "500": "the gateway failed to answer",
    "503": "a shard does not answer, or not in time",
}  # fmt: skip
LAST_EVENT_ID = {
    "name": "Last-Event-ID", "in": "header", "required": False, "schema": {"type": "string"},
    "description": "of server-sent events: the id of the last one, instead of `cursor`",
}  # fmt: skip
Schema = dict[str, Any]


def path_of(operation: Operation) -> str:
    return f"/api/v1/{'actions/' if operation.is_action else ''}{operation.name}"


def description(version: str) -> Schema:
    """The document, as plain data."""
    types: list[Any] = [Problem, Message, RefusedMessages, RefusedPushes, QueueFullProblem]
    types += [each for operation in TABLE for each in (operation.request, operation.answer)]
    types += [
        each
        for endpoint in ENDPOINTS
        for each in (endpoint.request, endpoint.answer, endpoint.body)
        if each is not None
    ]
    unique = list(dict.fromkeys(types))
    schemas, components = msgspec.json.schema_components(unique, ref_template=REFS)
    known = dict(zip(unique, schemas, strict=True))
    paths: dict[str, Schema] = {}
    for operation in TABLE:
        method: Literal["post", "get"] = "post" if operation.is_action else "get"
        paths[path_of(operation)] = {
            method: describe_operation(
                operation.name, operation.summary, operation.role, known[operation.answer],
                *(parameters(known[operation.request], components), None)
                if method == "get"
                else ((), body({JSON: known[operation.request]})),
            )
        }  # fmt: skip
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.described_path, {})[endpoint.method] = of_endpoint(endpoint, known, components)
    return readable_by_generators({
        "openapi": "3.1.0",
        "info": {
            "title": "rumq", "version": version,
            "description": "REST interface of a rumq broker. Every action is audited (event admin.action).",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    })  # fmt: skip


def of_endpoint(endpoint: Endpoint, known: dict[Any, Schema], components: Schema) -> Schema:
    is_in_body = endpoint.method == "post" and endpoint.name != "publish" and endpoint.body is None
    given = () if is_in_body else parameters(known[endpoint.request], components, endpoint.in_path)
    taken = body({JSON: known[endpoint.request]}) if is_in_body else None
    if endpoint.body is not None:
        taken = body({JSON: known[endpoint.body]}, is_required=bool(required_of(known[endpoint.body], components)))
    made = describe_operation(endpoint.name, endpoint.summary, endpoint.role, known[endpoint.answer], given, taken)
    if endpoint.name in ("make_token", "make_user"):
        made["responses"]["201"] = answer("it was made", known[endpoint.answer])
        made["responses"]["409"] = answer(
            "it is there already, or the settings name no file for it", PROBLEM, PROBLEM_JSON
        )
    if endpoint.name == "revoke_user":
        made["responses"]["409"] = answer("the settings name no password file", PROBLEM, PROBLEM_JSON)
    if endpoint.created:
        made["responses"]["201"] = answer(endpoint.created, known[endpoint.answer])
        made["responses"]["409"] = answer("it is there already, with other settings", PROBLEM, PROBLEM_JSON)
    if endpoint.name == "push":
        made["requestBody"] = body({JSON: batch_of(known[PushMessage]), MSGPACK: {}})
        made["responses"]["422"] = answer("some messages were refused", known[RefusedPushes], PROBLEM_JSON)
        full = {"oneOf": [known[RefusedPushes], known[QueueFullProblem], PROBLEM]}
        made["responses"]["429"] = answer("the queue is full; `refused` says of which messages", full, PROBLEM_JSON)
        made["responses"]["415"] = answer("the body is neither JSON nor MessagePack", PROBLEM, PROBLEM_JSON)
    if endpoint.name in ("take", "peek", "dead_letters"):
        made["responses"]["200"]["content"] |= {MSGPACK: {}}
    if endpoint.name == "take":
        made["responses"]["200"]["content"] |= {EVENTS: {}}
    if endpoint.name == "publish":
        made["requestBody"] = body({JSON: batch_of(known[Message]), MSGPACK: {}})
        made["responses"]["422"] = answer("some messages were refused", known[RefusedMessages], PROBLEM_JSON)
        made["responses"]["415"] = answer("the body is neither JSON nor MessagePack", PROBLEM, PROBLEM_JSON)
    if endpoint.name in ("records", "topic_records", "value"):
        made["responses"]["200"]["content"] |= {MSGPACK: {}}
    if endpoint.name in ("records", "topic_records"):
        made["responses"]["200"]["content"] |= {LINES: {}, EVENTS: {}}
        made["parameters"].append(LAST_EVENT_ID)
    if endpoint.role is None:
        made["responses"] = {
            "200": made["responses"]["200"], "503": answer("it is not so; `why` says why", known[endpoint.answer]),
        }  # fmt: skip
    return made


def describe_operation(
    name: str,
    summary: str,
    role: str | None,
    schema: Schema,
    given: list[Schema] | tuple[()],
    taken: Schema | None,
) -> Schema:
    made: Schema = {
        "operationId": name,
        "summary": summary,
        "description": {None: "For everybody.", "any": "Any token."}.get(role, f"Role: {role}."),
        "responses": {
            "200": answer("the answer", schema),
            **{code: answer(line, PROBLEM, PROBLEM_JSON) for code, line in COMMON.items()},
        },
    }
    if role is not None:
        made["security"] = [{"token": []}]
    if given:
        made["parameters"] = list(given)
    if taken is not None:
        made["requestBody"] = taken
    return made


def answer(text: str, schema: Schema, kind: str = JSON) -> Schema:
    return {"description": text, "content": {kind: {"schema": schema}}}


def batch_of(one: Schema) -> Schema:
    """One, or a list of them."""
    return {"oneOf": [one, {"type": "array", "items": one, "minItems": 1, "maxItems": 1000}]}


def required_of(reference: Schema, components: Schema) -> list[str]:
    """The fields of an object that have to be there."""
    found: list[str] = components[reference["$ref"].rpartition("/")[2]].get("required", [])
    return found


def body(content: dict[str, Schema], *, is_required: bool = True) -> Schema:
    return {"required": is_required, "content": {kind: {"schema": schema} for kind, schema in content.items()}}


def parameters(reference: Schema, components: Schema, in_path: frozenset[str] = frozenset()) -> list[Schema]:
    """The fields of a request as parameters of the query, or of the path; an absent one is null."""
    name = reference["$ref"].rpartition("/")[2]
    struct = components[name]
    found = []
    for key, schema in struct.get("properties", {}).items():
        plain = {each: value for each, value in schema.items() if each not in ("default", "description")}
        choices = [each for each in plain.pop("anyOf", ()) if each.get("type") != "null"]
        if choices:
            plain |= choices[0]
        if "enum" in plain:
            plain["enum"] = [value for value in plain["enum"] if value is not None]
        if key == "limit":
            plain["maximum"] = min(plain["maximum"], 1_000 if name in OF_RECORDS else ROWS_MAX)
        found.append(
            {
                "name": key, "in": "path" if key in in_path else "query",
                "required": key in struct.get("required", ()), "schema": plain,
                "description": schema.get("description", ""),
            }
        )  # fmt: skip
    return found


def names() -> list[str]:
    """Of every operation that has a path."""
    return [*(each.name for each in TABLE), *(each.name for each in ENDPOINTS)]
