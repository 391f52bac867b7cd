"""Certificates that are renewed without a restart: files that change, one by one, broken and repaired."""

import os
import shutil
import ssl
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from rumq.cluster.node.link_handshake import LinkTls
from rumq.errors import RumqError
from rumq.process.certificates.node_certificates import link_tls, node_tls, watched_link_tls, watched_node_tls
from rumq.process.listeners import certificate_watch
from rumq.process.listeners.certificate_watch import LOOK_SECONDS, CertificateWatch
from rumq.settings.table import Settings
from tests.net.authorities import Authorities
from tests.net.conftest import authorities as authorities


class Site:
    """A certificate and its key, and who reads them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.read = 0
        self.why = ""
        self.writes = 0
        self.write("one")
        self.watch = CertificateWatch("listeners", self.paths, self.renew, self.tell)

    def paths(self) -> list[str]:
        return [str(self.folder / "c.pem"), str(self.folder / "c.key"), ""]

    def renew(self) -> None:
        if self.why:
            raise RumqError(self.why)
        self.read += 1

    def tell(self, name: str, **fields: Any) -> None:
        self.told.append((name, fields))

    def write(self, text: str, *kinds: str) -> None:
        """Each write has a time of its own."""
        self.writes += 1
        for kind in kinds or ("pem", "key"):
            path = self.folder / f"c.{kind}"
            path.write_text(text)
            os.utime(path, (self.writes, self.writes))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_what_has_not_changed_is_not_read_again(site: Site) -> None:
    for _ in range(3):
        site.watch.look()
    site.write("one")
    for _ in range(3):
        site.watch.look()
    assert site.read == 0 and site.told == []


def test_what_has_changed_is_read_once_it_is_still(site: Site) -> None:
    """A certificate is written before its key: between the two they do not fit."""
    site.write("two", "pem")
    site.watch.look()
    site.write("two", "key")
    site.watch.look()
    assert site.read == 0
    site.watch.look()
    site.watch.look()
    assert site.read == 1
    assert site.told == [("certificate.renewed", {"of": "listeners", "files": sorted(site.paths()[:2])})]


def test_a_broken_file_is_told_once_and_tried_again_when_it_changes(site: Site) -> None:
    site.write("broken")
    site.why = "no PEM certificate"
    for _ in range(5):
        site.watch.look()
    assert site.told == [("certificate.refused", {"of": "listeners", "why": "no PEM certificate"})]
    site.why = ""
    site.write("three")
    site.watch.look()
    site.watch.look()
    assert site.read == 1 and site.told[-1][0] == "certificate.renewed"


def test_a_file_that_is_away_for_a_moment_and_a_link_that_is_exchanged_are_seen(site: Site) -> None:
    (site.folder / "c.key").unlink()
    site.watch.look()
    (site.folder / "next.key").write_text("four")
    (site.folder / "c.key").symlink_to(site.folder / "next.key")
    site.watch.look()
    site.watch.look()
    assert site.read == 1


def test_what_a_reload_has_read_is_not_read_again(site: Site) -> None:
    site.write("two")
    site.watch.note()
    for _ in range(3):
        site.watch.look()
    assert site.read == 0


def test_a_loop_that_turns_often_looks_every_few_seconds(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []
    monkeypatch.setattr(certificate_watch, "stamp_of", lambda path: looks.append(path) or ())
    for now in (1.0, 1.5, 2.0, 1.0 + LOOK_SECONDS):
        site.watch.look_sometimes(now)
    assert len(looks) == 2 * len(site.paths()[:2])


def test_it_looks_by_itself(site: Site) -> None:
    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(site.watch.run)
            site.write("two")
            with trio.fail_after(10 * LOOK_SECONDS):
                while not site.told:
                    await trio.sleep(LOOK_SECONDS / 2)
            nursery.cancel_scope.cancel()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0.05))
    assert site.read == 1


# Connections between nodes


@pytest.fixture
def node(authorities: Authorities, tmp_path: Path) -> Settings:
    for kind in ("pem", "key"):
        shutil.copy(authorities.path(authorities.node("plant", "n1"), kind), tmp_path / f"now.{kind}")
    shutil.copy(authorities.path("ca"), tmp_path / "ca.pem")
    plain = Settings()
    cluster = msgspec.structs.replace(
        plain.cluster, name="plant", node="n1", tls_certificate=str(tmp_path / "now.pem"),
        tls_key=str(tmp_path / "now.key"), tls_authority=str(tmp_path / "ca.pem"),
    )  # fmt: skip
    return msgspec.structs.replace(plain, cluster=cluster)


def put(authorities: Authorities, name: str, folder: Path) -> bytes:
    """Put another certificate into its place; returns it."""
    for kind in ("pem", "key"):
        shutil.copy(authorities.path(name, kind), folder / f"now.{kind}")
    (folder / "now.key").chmod(0o600)
    return ssl.PEM_cert_to_DER_cert((folder / "now.pem").read_text())


def shown(server: ssl.SSLContext, client: ssl.SSLContext) -> bytes | None:
    """The certificate that a server shows in a handshake with a client."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [server.wrap_bio(there, back, server_side=True), client.wrap_bio(back, there)]
    for end in (ends[1], ends[0], ends[1]):
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            pass
    return ends[1].getpeercert(binary_form=True)


def look(watch: CertificateWatch | None) -> None:
    assert watch is not None
    watch.look()
    watch.look()


def test_nodes_show_the_new_certificate_and_keep_the_old_one_while_it_is_wrong(
    authorities: Authorities, node: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, str]] = []
    monkeypatch.setattr(
        "rumq.process.certificates.node_certificates.tell",
        lambda name, **fields: told.append((name, fields.get("why", ""))),
    )
    first = put(authorities, authorities.node("plant", "n1"), tmp_path)
    pump, links = node_tls(node), link_tls(node)
    assert pump is not None and links is not None

    def use(fresh: LinkTls) -> None:
        links.server, links.client = fresh.server, fresh.client

    watches = watched_node_tls(node, pump), watched_link_tls(node, use)
    contexts = lambda: ((pump._server.context, pump._client.context), (links.server, links.client))  # noqa: E731
    second = put(authorities, authorities.node("plant", "n1"), tmp_path)
    assert first != second
    for watch in watches:
        look(watch)
    assert [shown(*pair) for pair in contexts()] == [second, second]
    put(authorities, authorities.node("plant", "n2"), tmp_path)  # of another node: the others would refuse it
    for watch in watches:
        look(watch)
    (tmp_path / "now.pem").write_text("nonsense")
    for watch in watches:
        look(watch)
    assert [shown(*pair) for pair in contexts()] == [second, second]
    assert [name for name, _ in told] == ["certificate.renewed"] * 2 + ["certificate.refused"] * 4
    assert "rumq://plant/node/n1" in told[2][1] and "certificate" in told[-1][1]
