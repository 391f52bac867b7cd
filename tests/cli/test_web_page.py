"""The start says where the web page is; `rumqd --page` serves it, with a token that the next such start replaces."""

from __future__ import annotations

import json
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from rumq.cli import page_access
from rumq.cli.page_access import free_page_port, make_page_token
from rumq.errors import RumqError
from rumq.process.wiring.page_address import OFF, page_address
from rumq.settings.table import Settings
from rumq.settings.table.gateway import Gateway
from tests.cli.conftest import ENVIRONMENT, SECONDS_MAX, Broker, command, rumqd


class WithPage(NamedTuple):
    """page, token: as the command prints them; address: of the gateway"""

    page: str
    token: str
    address: str

    def status_of(self, path: str, token: str) -> int:
        request = urllib.request.Request(f"{self.address}{path}", headers={"authorization": f"Bearer {token}"})
        try:
            with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as refused:
            return refused.code


@contextmanager
def with_page(data: Path) -> Iterator[WithPage]:
    """`rumqd --page`, until the block ends; its gateway is on any free port, as tests beside this one have theirs."""
    flags = ["--page", "--host", "127.0.0.1", "--port", "0", "--data", str(data), "--set", "gateway.port=-1"]
    broker = subprocess.Popen(
        command("run", *flags), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT, text=True
    )
    try:
        assert broker.stdout is not None and broker.stderr is not None
        page, token = (broker.stdout.readline().rstrip("\n").partition(": ")[2] for _ in range(2))
        event: dict[str, Any] = {}
        while event.get("protocol") != "http":
            event = json.loads(broker.stderr.readline())
        yield WithPage(page, token, f"http://127.0.0.1:{event['port']}")
    finally:
        broker.terminate()
        broker.communicate(timeout=SECONDS_MAX)
    assert broker.returncode == 0


def test_the_start_says_how_to_turn_the_page_on(tmp_path: Path) -> None:
    broker = subprocess.Popen(
        command("run", "--host", "127.0.0.1", "--port", "0", "--data", str(tmp_path / "data")),
        stderr=subprocess.PIPE, env=ENVIRONMENT, text=True,
    )  # fmt: skip
    assert broker.stderr is not None
    event: dict[str, Any] = {}
    while event.get("event") != "broker.ready":
        event = json.loads(broker.stderr.readline())
    broker.terminate()
    broker.communicate(timeout=SECONDS_MAX)
    assert event["page"] == OFF and "rumqd --page" in OFF


def test_the_token_that_is_printed_is_one_of_the_page_until_the_next_start(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with with_page(data) as first:
        assert first.page == "on a free port, which listener.bound has"
        assert first.status_of("/", "") == 200
        assert first.status_of("/api/v1/me", first.token) == 200
        assert first.status_of("/api/v1/me", first.token + "x") == 401
    with with_page(data) as second:
        assert second.status_of("/api/v1/tokens", second.token) == 200, "it may administer"
        assert second.status_of("/api/v1/me", first.token) == 401
    listed = rumqd("token", "list", "--data", str(data)).out.split()
    assert listed[:2] == ["page", "administer,consume,publish,read"] and listed[3] == "until", "one, which expires"


def test_a_token_is_not_made_for_a_data_directory_of_another_broker(tmp_path: Path, broker: Broker) -> None:
    """Its page would ask for the token anew, and nobody would have been told which."""
    running = Broker(tmp_path / "data")
    try:
        ended = rumqd("--page", "--port", "0", "--data", str(tmp_path / "data"))
        assert ended.status == 3 and ended.out == ""
        assert not (tmp_path / "data/gateway-tokens").exists()
    finally:
        assert running.stop() == 0


@pytest.mark.parametrize(
    ("given", "address"),
    [
        (Gateway(port=8080), "http://localhost:8080/"),
        (Gateway(port=8081, host="*"), "http://localhost:8081/"),
        (Gateway(port=8443, host="plant.example", tls_certificate="server.pem"), "https://plant.example:8443/"),
        (Gateway(port=8080, host="::1"), "http://[::1]:8080/"),
        (Gateway(), OFF),
    ],
)
def test_the_address_is_one_that_a_browser_takes(given: Gateway, address: str) -> None:
    assert page_address(msgspec.structs.replace(Settings(), gateway=given)) == address


def test_a_port_that_is_taken_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        first = taken.getsockname()[1]
        monkeypatch.setattr(page_access, "FIRST_PORT", first)
        monkeypatch.setattr(page_access, "PORTS", 1)
        with pytest.raises(RumqError, match=r"--set gateway\.port=N"):
            free_page_port()
        monkeypatch.setattr(page_access, "PORTS", 50)
        assert first < free_page_port() < first + 50


def test_where_no_token_can_be_written_the_error_names_the_way_out(tmp_path: Path) -> None:
    named = Gateway(port=8080, tokens_file=str(tmp_path / "none/tokens"))
    with pytest.raises(RumqError, match=r"none/tokens: No such file or directory; start without --page"):
        make_page_token(msgspec.structs.replace(Settings(), gateway=named))
