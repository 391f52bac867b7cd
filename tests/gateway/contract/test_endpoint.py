"""What is said of an endpoint: the parameters of its path are fields of its request, in OpenAPI's form."""

import msgspec
import pytest

from rumq.gateway.contract.endpoint import Endpoint
from rumq.gateway.contract.endpoints import ENDPOINTS


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda each: each.name)
def test_every_parameter_of_a_path_is_a_field_of_the_request(endpoint: Endpoint) -> None:
    fields = {each.encode_name: each for each in msgspec.structs.fields(endpoint.request)}
    assert endpoint.in_path <= fields.keys()
    assert all(fields[name].required for name in endpoint.in_path)


def test_a_path_is_described_without_the_words_of_its_router() -> None:
    (found,) = [each for each in ENDPOINTS if each.name == "create_topic_channel"]
    assert found.described_path == "/api/v1/queues/{label}/channels/{topic}"
    assert found.in_path == {"label", "topic"}


def test_names_are_there_once_and_so_is_each_method_of_a_path() -> None:
    assert len({each.name for each in ENDPOINTS}) == len(ENDPOINTS)
    assert len({(each.method, each.described_path) for each in ENDPOINTS}) == len(ENDPOINTS)
