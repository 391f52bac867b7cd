"""The two services of `examples/news.py` in two browsers, while brokers and services are killed with kill -9.

No post is lost, none is shown twice. The short form has one node, the long one kills each of three. These are the last
commands of docs/guides/queues.md."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.page.browser import Browser
from tests.page.conftest import BROWSER, REASON
from tests.page.news_sites import OLDEST, NewsSites, Reader

pytestmark = [pytest.mark.browser, pytest.mark.skipif(BROWSER is None, reason=REASON)]
TEXT, REPLY = "textarea", f"{OLDEST} [name=text]"


@pytest.fixture
def other_chromium(tmp_path: Path) -> Iterator[Browser]:
    assert BROWSER is not None
    browser = Browser(BROWSER, tmp_path / "browser")
    yield browser
    browser.end()


def play(sites: NewsSites, news: Reader, comments: Reader, victims: list[str]) -> None:
    """Post at both pages, before, while and after each victim is killed; then look at both, also anew."""
    posted, commented = ["the first"], list[str]()
    news.post("the first")
    comments.browser.sees(".post p", "the first")  # live, by the queue

    def both(number: int) -> None:
        news.sent(TEXT)
        comments.sent(REPLY)
        posted.append(f"news {number} <b>&amp;")
        commented.append(f"comment {number}")
        news.post(posted[-1])
        comments.comment(commented[-1])

    number = 0
    for victim in victims:
        for _ in range(2):
            both(number := number + 1)
        killed = sites.pids[victim]
        sites.kill(victim)
        for _ in range(2):
            both(number := number + 1)
        sites.wait_restarted(victim, killed)
    news.sent(TEXT)
    comments.sent(REPLY)
    for reader in (news, comments):
        for is_anew in (False, True):  # what came live, and what the service has
            if is_anew:
                reader.open()
            reader.patiently(f"document.querySelectorAll('.post p').length >= {len(posted)}")
            reader.patiently(f"document.querySelectorAll('.comments li').length >= {len(commented)}")
            assert sorted(reader.articles) == sorted(posted) and sorted(reader.comments) == sorted(commented)


def check_end(sites: NewsSites) -> None:
    assert sites.interrupt() == 0, sites.said
    assert sites.left_over == []


def test_a_killed_broker_and_service_lose_and_double_no_post(
    chromium: Browser, other_chromium: Browser, tmp_path: Path
) -> None:
    sites = NewsSites(tmp_path / "data")
    try:
        news, comments = Reader(chromium, sites, "news"), Reader(other_chromium, sites, "comments")
        play(sites, news, comments, ["n1", "news"])
        check_end(sites)
    finally:
        sites.end()
        chromium.open("about:blank")


@pytest.mark.long
@pytest.mark.skipif(shutil.which("etcd") is None, reason="etcd is not installed: apt-get install etcd-server")
def test_each_of_three_nodes_is_killed_and_no_post_is_lost_or_doubled(
    chromium: Browser, other_chromium: Browser, tmp_path: Path
) -> None:
    sites = NewsSites(tmp_path / "data", nodes=3)
    try:
        news, comments = Reader(chromium, sites, "news"), Reader(other_chromium, sites, "comments")
        play(sites, news, comments, ["n1", "n2", "n3", "comments", "news"])
        check_end(sites)
    finally:
        sites.end()
        chromium.open("about:blank")
