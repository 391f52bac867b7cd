"""A certificate names one node of one cluster, and is good for no other."""

import pytest

from rumq.cluster.links.node_names import NodeNames, node_uri, uris_of

NAMES, ACCEPTS = NodeNames("plant"), NodeNames("plant", accepts_unnamed=True)
N1 = "rumq://plant/node/n1"


def test_a_certificate_of_the_node_is_good_whatever_its_disk() -> None:
    assert node_uri("plant", "n1") == N1
    assert NAMES.maybe_problem([N1], "n1#00aa11bb") is None
    assert NAMES.maybe_problem(["spiffe://x/y", N1], "n1") is None


@pytest.mark.parametrize("names", [NAMES, ACCEPTS])
@pytest.mark.parametrize(
    "uri",
    [
        "rumq://plant/node/n2", "rumq://other/node/n1", "rumq://plant/node/n1/", "rumq://plant/node/N1",
        "rumq://plant/client/n1", "rumq://plant", "rumq://",
    ],
)  # fmt: skip
def test_another_name_is_never_good(names: NodeNames, uri: str) -> None:
    problem = names.maybe_problem([uri], "n1#1")
    assert problem == f"it shows the certificate of {uri}, not of {N1}"


def test_a_certificate_without_a_nodes_name_is_good_only_where_a_setting_says_so() -> None:
    for uris in ((), ("https://example.org",)):
        problem = NAMES.maybe_problem(uris, "n1#1")
        assert problem is not None and N1 in problem and "cluster.unnamed_certificates" in problem
        assert ACCEPTS.maybe_problem(uris, "n1#1") is None


def test_uris_are_those_of_the_alternative_names() -> None:
    assert uris_of(None) == uris_of({}) == ()
    found = {"subjectAltName": (("DNS", "rumq://plant/node/n1"), ("URI", "rumq://plant/node/n2"))}
    assert uris_of(found) == ("rumq://plant/node/n2",)
