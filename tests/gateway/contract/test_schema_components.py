"""Schemas that generators of clients can read: tuples, names, and none that no path refers to."""

from typing import Any

import pytest

from rumq.gateway.contract.openapi import description
from rumq.gateway.contract.schema_components import name_of, readable_by_generators, references

PAIR = {"type": "array", "minItems": 2, "maxItems": 2, "prefixItems": [{"type": "string"}] * 2, "items": False}
MIXED = {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False}


def document(answer: dict[str, Any], **schemas: Any) -> dict[str, Any]:
    return {"paths": {"/a": {"get": answer}}, "components": {"schemas": schemas}}


def refers(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def test_a_tuple_of_equal_items_is_a_list_of_fixed_length() -> None:
    made = readable_by_generators(document({"schema": dict(PAIR)}))
    assert made["paths"]["/a"]["get"]["schema"] == {
        "type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "string"},
    }  # fmt: skip


def test_a_tuple_of_different_items_says_its_length() -> None:
    made = readable_by_generators(document({"schema": dict(MIXED)}))
    assert made["paths"]["/a"]["get"]["schema"] == {
        "type": "array", "minItems": 2, "maxItems": 2, "prefixItems": MIXED["prefixItems"],
    }  # fmt: skip


def test_names_have_no_module_and_what_nothing_refers_to_is_left_out() -> None:
    schemas = {"x.answers.Rows": {"items": refers("Row")}, "x.requests.Rows": {}, "Row": {"type": "object"}}
    made = readable_by_generators(document(refers("x.answers.Rows"), **schemas))
    assert made["components"]["schemas"] == {"Rows": {"items": refers("Row")}, "Row": {"type": "object"}}
    assert made["paths"]["/a"]["get"] == refers("Rows")


def test_two_types_of_one_name_are_refused() -> None:
    both = {"one": refers("x.Rows"), "two": refers("y.Rows")}
    with pytest.raises(ValueError, match="rename one"):
        readable_by_generators(document(both, **{"x.Rows": {}, "y.Rows": {}}))


def test_every_reference_of_the_description_is_there_and_no_name_is_of_a_module() -> None:
    made = description("0")
    schemas = made["components"]["schemas"]
    assert set(references(made)) == set(schemas), "each is referred to, and there"
    assert not [name for name in schemas if "." in name]
    assert name_of(refers("a")["$ref"]) == "a"
