"""The documentation page has every operation, parameter, type and problem of the description, and no more."""

import re
from html.parser import HTMLParser
from typing import Any

from rumq.gateway.contract.docs_page import docs_page
from rumq.gateway.contract.openapi import description, names
from rumq.gateway.contract.problems import KINDS
from tests.gateway.conftest import Gateway

VOID = {"meta", "link", "br"}


class Page(HTMLParser):
    """ids, targets of links; faults: tags that do not match"""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()
        self._open: list[str] = []
        self.feed(text)
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.add(tag)
        self.ids += [each] if (each := given.get("id")) else []
        self.links += [each for name in ("href", "src") if (each := given.get(name))]
        assert not given.keys() & {"style", "onclick"}
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


def test_every_operation_type_and_problem_is_there_once_and_every_link_leads_somewhere() -> None:
    document = description("1.2.3")
    page = Page(docs_page(document))
    wanted = {*names(), *KINDS, *(f"type-{name}" for name in document["components"]["schemas"])}
    assert wanted <= set(page.ids) and len(page.ids) == len(set(page.ids))
    inner = {link[1:] for link in page.links if link.startswith("#")}
    assert inner <= set(page.ids)
    assert [link for link in page.links if not link.startswith("#")] == [
        "../../page/docs.css",
        "openapi.json",
    ]
    assert "script" not in page.tags


def test_what_the_description_says_is_no_markup() -> None:
    document: Any = description("<script>alert(1)</script>")
    assert "<script" not in docs_page(document)


def test_the_page_is_served_offline_under_a_strict_policy(gateway: Gateway) -> None:
    answer = gateway.ask("GET", "/api/v1/docs", token=None)
    assert answer.status == 200 and answer.headers["content-type"].startswith("text/html")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy and "http" not in policy
    text = answer.body.decode()
    assert not re.findall(r"(?:src|href)=\"(?:https?:)?//", text)
    assert gateway.ask("GET", "/page/docs.css", token=None).status == 200
    problem = gateway.ask("GET", "/api/v1/nope").json["type"]
    path, _, name = problem.partition("#")
    assert path == "/api/v1/docs" and f'id="{name}"' in text
