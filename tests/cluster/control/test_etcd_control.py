"""The control plane in a real etcd: races, faults, leases, watches, passwords, TLS. Debian: etcd-server."""

import signal
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import trio
import trustme

from rumq.cluster.control.control_plane import Replaced
from rumq.cluster.control.errors import ControlRefused, LeaseLost, NameTaken, OutcomeUnknown, Unreachable
from rumq.cluster.control.etcd import NO_FILES, Etcd, TlsFiles
from rumq.cluster.control.etcd_control import EtcdControl
from rumq.cluster.control.records import ClusterRecord, ShardRecord
from tests.cluster.agent.world import node_record
from tests.cluster.etcd_processes import Etcd as EtcdCluster
from tests.cluster.etcd_processes import needs_etcd, running_etcd

pytestmark = needs_etcd
SECONDS_MAX = 60.0


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    """A member that no test stops. Each test has a cluster name of its own."""
    with running_etcd(tmp_path_factory.mktemp("etcd")) as etcd:
        yield etcd


def record(claim: str, epoch: int = 0) -> ShardRecord:
    return ShardRecord(epoch=epoch, leader="", claim=claim, replicas=["n1#00"])


def cluster(id: str) -> ClusterRecord:
    return ClusterRecord(id=id, shards=3, replicas=3, feature_level=1, created_us=0)


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        with trio.fail_after(SECONDS_MAX):
            await main()

    trio.run(bounded)


def control(
    endpoints: list[str], name: str, tls: TlsFiles = NO_FILES, user: str = "", password: str = ""
) -> EtcdControl:
    return EtcdControl(Etcd(endpoints, tls, user, password), "/rumq", name)


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """etcd reports nothing of what it does with its members and leases, so it is asked."""
    while not await condition():
        await trio.sleep(0.02)


def test_of_many_changes_of_one_revision_one_wins(one: EtcdCluster) -> None:
    async def main() -> None:
        planes = [control(one.endpoints, "race") for _ in range(8)]
        answers: list[Replaced] = []

        async def claim(number: int) -> None:
            answers.append(await planes[number].replace(0, 0, record(f"claim {number}")))

        async with trio.open_nursery() as nursery:
            for number in range(8):
                nursery.start_soon(claim, number)
        [won] = [each for each in answers if each.won]
        assert {each.now for each in answers} == {won.now} if False else all(each.now == won.now for each in answers)
        assert won.now is not None
        again = await planes[0].replace(0, won.now.revision, record("next", 1))
        assert again.won and again.now is not None and again.now.revision > won.now.revision
        late = await planes[1].replace(0, won.now.revision, record("late", 1))
        assert late == Replaced(False, again.now)
        assert (await planes[2].shards())[0] == again.now
        for plane in planes:
            await plane.close()

    run(main)


def test_the_first_record_of_the_cluster_stays(one: EtcdCluster) -> None:
    async def main() -> None:
        first, second = control(one.endpoints, "first"), control(one.endpoints, "first")
        assert (await first.cluster_record(cluster("a"))).id == "a"
        assert (await second.cluster_record(cluster("b"))).id == "a"
        assert (await second.snapshot()).cluster == cluster("a")
        other = control(one.endpoints, "first-2")  # a name that begins alike has keys of its own
        assert (await other.snapshot()).cluster is None

    run(main)


def test_a_node_lives_as_long_as_its_lease(one: EtcdCluster) -> None:
    async def main() -> None:
        plane, other = control(one.endpoints, "lease"), control(one.endpoints, "lease")
        await plane.announce(node_record("n1"))
        await plane.renew()
        assert await other.nodes() == [node_record("n1")]
        await plane.announce(node_record("n1", clock_us=7))
        assert [each.clock_us for each in await other.nodes()] == [7]
        await plane.leave()
        assert await other.nodes() == []
        with pytest.raises(LeaseLost):
            await plane.renew()
        await plane.announce(node_record("n1"))
        assert [each.name for each in await other.nodes()] == ["n1"]

    run(main)


def test_a_lease_that_nobody_renews_expires_and_is_told(one: EtcdCluster) -> None:
    async def main() -> None:
        plane, other = control(one.endpoints, "expiry"), control(one.endpoints, "expiry")
        await plane.announce(node_record("n1"))
        hints = 0

        def hint() -> None:
            nonlocal hints
            hints += 1

        async def is_gone() -> bool:
            return not await other.nodes()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(other.changes, hint)
            await until(is_gone)
            nursery.cancel_scope.cancel()
        assert hints >= 2  # that the watch stands, and the end of the lease
        with pytest.raises(LeaseLost):
            await plane.announce(node_record("n1"))  # with a lease that is over
        await plane.announce(node_record("n1"))
        assert len(await other.nodes()) == 1

    run(main)


def test_a_name_belongs_to_one_living_node(one: EtcdCluster) -> None:
    async def main() -> None:
        plane, other, again = (control(one.endpoints, "names") for _ in range(3))
        await plane.announce(node_record("n1"))
        with pytest.raises(NameTaken, match=r"n1#00 at n1:7883.*n1#11 at n1:7883"):
            await other.announce(node_record("n1", id="n1#11", incarnation="b"))
        await again.announce(node_record("n1", incarnation="b"))  # the same disk at the same address: a later run
        with pytest.raises(NameTaken):
            await plane.announce(node_record("n1"))

    run(main)


def test_a_watch_tells_of_a_change_and_of_its_own_gap(tmp_path: Path) -> None:
    async def main(etcd: EtcdCluster) -> None:
        plane, other = control(etcd.endpoints, "watch"), control(etcd.endpoints, "watch")
        hinted = trio.Event()

        def hint() -> None:
            hinted.set()

        async def next_hint() -> None:
            nonlocal hinted
            await hinted.wait()
            hinted = trio.Event()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(plane.changes, hint)
            await next_hint()  # it stands
            won = await other.replace(0, 0, record("a"))
            assert won.now is not None
            await next_hint()
            etcd.members[0].kill()
            await next_hint()  # a gap
            etcd.members[0].start()

            async def is_back() -> bool:
                try:
                    return bool(await plane.shards())
                except Unreachable:
                    return False

            await until(is_back)
            hinted = trio.Event()
            assert (await other.replace(0, won.now.revision, record("b", 1))).won
            await next_hint()  # of the change, or that the watch stands again
            nursery.cancel_scope.cancel()

    with running_etcd(tmp_path) as etcd:
        run(lambda: main(etcd))


def test_a_change_to_a_stopped_etcd_has_an_unknown_outcome_until_it_is_known(tmp_path: Path) -> None:
    """It is in the socket of the stopped etcd, which carries it out once it goes on. It is sent once."""

    async def main(etcd: EtcdCluster) -> None:
        plane = control(etcd.endpoints, "stopped")
        held = await plane.replace(0, 0, record("a"))
        assert held.now is not None
        revision = held.now.revision
        etcd.members[0].signal(signal.SIGSTOP)
        sent = plane.requests
        with pytest.raises(OutcomeUnknown):
            await plane.replace(0, revision, record("b", 1))
        assert plane.requests == sent + 1
        with pytest.raises(Unreachable):
            await plane.settle(0, revision, "b")
        etcd.members[0].signal(signal.SIGCONT)
        settled = None
        while settled is None:
            try:
                settled = await plane.settle(0, revision, "b")
            except (OutcomeUnknown, Unreachable):
                await trio.sleep(0.02)
                # Whether or not etcd noticed that the client had gone: the same change once more has one winner.
                try:
                    settled = await plane.replace(0, revision, record("b", 1))
                except (OutcomeUnknown, Unreachable):
                    continue
        assert settled.won and settled.now is not None and settled.now.record.epoch == 1
        assert (await plane.settle(0, revision, "other")) == Replaced(False, settled.now)

    with running_etcd(tmp_path) as etcd:
        run(lambda: main(etcd))


def test_without_its_leader_etcd_goes_on_with_another_endpoint(tmp_path: Path) -> None:
    async def main(etcd: EtcdCluster) -> None:
        plane = control(etcd.endpoints, "leaderless")
        held = await plane.replace(0, 0, record("a"))
        assert held.now is not None

        async def all_know_all() -> bool:
            """A member that has just begun is yet to tell the others its address."""
            members = (await plane.health()).members
            return len({each.store for each in members}) == 1 and bool(members[0].store)

        await until(all_know_all)
        health = await plane.health()
        [leader] = [each.endpoint for each in health.members if each.is_leader]
        assert [each.why for each in health.members] == ["", "", ""]
        [member] = [each for each in etcd.members if each.endpoint == leader]
        member.kill()

        async def is_back() -> bool:
            try:
                return bool(await plane.shards())
            except Unreachable:
                return False

        await until(is_back)
        done = None
        while done is None:
            try:
                done = await plane.replace(0, held.now.revision, record("b", 1))
            except (OutcomeUnknown, Unreachable):
                await trio.sleep(0.05)
        assert done.won
        health = await plane.health()
        assert [bool(each.why) for each in health.members].count(True) == 1
        assert len(await plane.version_faults()) == 1

    with running_etcd(tmp_path, 3) as etcd:
        run(lambda: main(etcd))


def test_etcds_of_one_member_each_are_told_apart(tmp_path: Path, one: EtcdCluster) -> None:
    async def main(other: EtcdCluster) -> None:
        health = await control([*one.endpoints, *other.endpoints], "apart").health()
        assert len({each.store for each in health.members}) == 2

    with running_etcd(tmp_path) as etcd:
        run(lambda: main(etcd))


def test_a_change_goes_to_the_next_endpoint_only_if_nothing_was_sent(one: EtcdCluster) -> None:
    async def main() -> None:
        plane = control(["http://127.0.0.1:1", *one.endpoints], "next")
        assert (await plane.replace(0, 0, record("a"))).won
        nobody = control(["http://127.0.0.1:1"], "next")
        with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1"):
            await nobody.replace(0, 0, record("a"))

    run(main)


def test_a_user_needs_the_password_while_etcd_asks_for_it(tmp_path: Path) -> None:
    async def main(etcd: EtcdCluster) -> None:
        root = control(etcd.endpoints, "auth", user="root", password="secret")
        assert (await root.replace(0, 0, record("a"))).won  # auth is off: the user is not asked for
        raw = Etcd(etcd.endpoints)
        for path, body in (
            ("/v3/auth/user/add", {"name": "root", "password": "secret"}),
            ("/v3/auth/role/add", {"name": "root"}),
            ("/v3/auth/user/grant", {"user": "root", "role": "root"}),
            ("/v3/auth/user/add", {"name": "guest", "password": "guest"}),
            ("/v3/auth/enable", {}),
        ):
            await raw._ask_one(etcd.endpoints[0], path, dict(body), dict)
        with pytest.raises((ControlRefused, Unreachable)):
            await control(etcd.endpoints, "auth").shards()
        with pytest.raises(ControlRefused, match="refuses the user 'root'"):
            await control(etcd.endpoints, "auth", user="root", password="wrong").shards()
        with pytest.raises(ControlRefused, match="permission denied"):
            await control(etcd.endpoints, "auth", user="guest", password="guest").shards()
        plane = control(etcd.endpoints, "auth", user="root", password="secret")
        assert len(await plane.shards()) == 1
        plane._etcd._token = "too old"
        assert (await plane.replace(1, 0, record("b"))).won
        stood = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(plane._etcd.watch, b"/", b"0", stood.set)
            await stood.wait()
            nursery.cancel_scope.cancel()

    with running_etcd(tmp_path) as etcd:
        run(lambda: main(etcd))


def test_tls_is_checked_on_both_sides(tmp_path: Path) -> None:
    authority = trustme.CA()
    server, node = authority.issue_cert("127.0.0.1"), authority.issue_cert("node")
    names = {"ca": tmp_path / "ca.pem", "cert": tmp_path / "node.pem", "key": tmp_path / "node.key"}
    authority.cert_pem.write_to_path(names["ca"])
    node.cert_chain_pems[0].write_to_path(names["cert"])
    node.private_key_pem.write_to_path(names["key"])
    server.cert_chain_pems[0].write_to_path(tmp_path / "server.pem")
    server.private_key_pem.write_to_path(tmp_path / "server.key")
    flags = [
        "--cert-file", str(tmp_path / "server.pem"), "--key-file", str(tmp_path / "server.key"), "--client-cert-auth",
        "--trusted-ca-file", str(names["ca"]),
    ]  # fmt: skip
    etcd = EtcdCluster(tmp_path / "etcd", 1, *flags, scheme="https")

    async def main() -> None:
        plane = control(etcd.endpoints, "tls", TlsFiles(str(names["ca"]), str(names["cert"]), str(names["key"])))
        won = None
        while won is None:
            try:
                won = await plane.replace(0, 0, record("a"))
            except (Unreachable, OutcomeUnknown):
                await trio.sleep(0.05)  # it starts
        assert won.won
        for files in (TlsFiles(ca=str(names["ca"])), NO_FILES):
            with pytest.raises(Unreachable):
                await control(etcd.endpoints, "tls", files).shards()
        with pytest.raises(ControlRefused, match=r"nowhere\.pem"):
            control(etcd.endpoints, "tls", TlsFiles(ca="nowhere.pem"))

    try:
        run(main)
    finally:
        etcd.kill()


def test_what_is_no_etcd_and_what_is_no_record_of_ours_is_said(one: EtcdCluster) -> None:
    async def main() -> None:
        with pytest.raises(ControlRefused, match="no endpoint"):
            control([], "x")
        with pytest.raises((ControlRefused, Unreachable), match="nonsense"):
            await control(["nonsense"], "x").shards()
        raw = Etcd(one.endpoints)
        await raw.change([], [{"request_put": {"key": b"/rumq/foreign/shard/0", "value": b"hello"}}], [])
        with pytest.raises(ControlRefused, match="/rumq/foreign/shard/0"):
            await control(one.endpoints, "foreign").shards()

    run(main)


def test_the_layout_is_written_once_and_removed_nodes_are_noted(one: EtcdCluster) -> None:
    async def main() -> None:
        first, second = control(one.endpoints, "layout"), control(one.endpoints, "layout")
        assert await first.layout({"main": 1}) == {"main": 1}
        assert await second.layout({"main": 3}) == {"main": 1}
        for _ in range(2):
            await first.note_removed("n4#04", is_removed=True)
        await first.note_removed("n5#05", is_removed=True)
        await second.note_removed("n5#05", is_removed=False)
        found = await second.snapshot()
        assert (found.layout, found.removed) == ({"main": 1}, ["n4#04"])
        for each in (first, second):
            await each.close()

    run(main)
