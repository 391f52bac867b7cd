"""The OpenAPI description is checked against the gateway by schemathesis: no server error, no undocumented answer."""

import os
from collections.abc import Iterator

import pytest

from tests.gateway.conftest import Gateway, started

schemathesis = pytest.importorskip("schemathesis")
# Actions that would end the broker that is asked, or have it refuse the next request.
NOT_TRIED = {"shutdown", "drain", "ban"}
EXAMPLES = int(os.environ.get("RUMQ_SCHEMA_EXAMPLES", "3"))  # of each operation; 50 take minutes


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    made = started(tmp_path_factory.mktemp("description"), "queues.enabled=true")
    yield made
    made.broker.end()


def test_every_answer_is_as_described(gateway: Gateway) -> None:
    from hypothesis import HealthCheck, Phase, given, settings
    from schemathesis.checks import load_all_checks, not_a_server_error
    from schemathesis.specs.openapi import checks

    load_all_checks()
    checked = [
        not_a_server_error, checks.status_code_conformance, checks.content_type_conformance,
        checks.response_schema_conformance, checks.response_headers_conformance,
    ]  # fmt: skip

    schema = schemathesis.openapi.from_url(f"http://127.0.0.1:{gateway.port}/api/v1/openapi.json")
    headers = {"authorization": f"Bearer {gateway.secrets['ops']}"}
    tried = 0
    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.definition.raw["operationId"] in NOT_TRIED:
            continue
        tried += 1

        @settings(
            max_examples=EXAMPLES, deadline=None, database=None, derandomize=True,
            suppress_health_check=list(HealthCheck), phases=[Phase.generate],
        )  # fmt: skip
        @given(case=operation.as_strategy())
        def check(case: object) -> None:
            case.call_and_validate(headers=headers, checks=checked)  # type: ignore[attr-defined]

        check()
    assert tried > 30
    assert not gateway.broker.named("gateway.failed")


def test_the_description_has_every_endpoint_with_its_role(gateway: Gateway) -> None:
    document = gateway.get("openapi.json")
    assert document["openapi"] == "3.1.0"
    assert document["paths"]["/api/v1/clients"]["get"]["security"] == [{"token": []}]
    limit = next(each for each in document["paths"]["/api/v1/clients"]["get"]["parameters"] if each["name"] == "limit")
    assert (limit["schema"]["maximum"], limit["schema"]["x-unit"]) == (200, "rows")
    assert gateway.ask("GET", "/api/v1/clients?limit=201").status == 400
