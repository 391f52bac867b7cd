"""A standby's process: it follows who has promises of it, says no to others, and takes office when nobody leads."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import msgspec
import pytest

from commitlog import LogError
from commitlog.replica.replica_state import DOUBTED
from rumq.cluster.control.agent_messages import AgentMessage, Claim, Claimed, Here, Order, OrderResult, Report, Seen
from rumq.cluster.control.records import ShardRecord, Versioned
from rumq.cluster.links.greeting import TO_A_STRANGER, Greeting, GreetingRefused
from rumq.cluster.node.frame_link import FrameLink
from rumq.cluster.node.standby_process import TakenOffice
from rumq.cluster.replication import messages as m
from tests.cluster.node.world import KEY, Peer, Site, frames, log, node_record, record
from tests.cluster.node_tls import context, link_tls
from tests.net.authorities import Authorities

Story = Iterator[Callable[[], object]]
Made = Callable[..., Site]
N1, N2, N3 = "n1#1", "n2#2", "n3#3"


def led(site: Site) -> None:
    """n2 leads; nobody takes office, for the control plane does not answer."""
    view = site.view(record(N1, N2, N3))
    site.agent.first = [Seen(msgspec.structs.replace(view, is_current=False))]


def grants(site: Site, first: ShardRecord, *others: object, known: bool = True) -> None:
    """The agent shows a record without a leader, and carries out what the standby claims."""
    view = site.view(first, *others)  # type: ignore[arg-type]
    site.agent.first = [Seen(view)]

    def answer(message: AgentMessage) -> list[AgentMessage]:
        if not isinstance(message, Claim):
            return []
        now = Versioned(message.record, message.revision + 1)
        if known:
            return [Claimed(message.request, True, True, now)]
        seen = msgspec.structs.replace(view, shards=[now])
        return [Claimed(message.request, False, False, None), Seen(seen)]

    site.agent.answer = answer


def test_it_says_who_it_is_and_reports(site: Made) -> None:
    here = site()
    led(here)
    assert here.run(iter([lambda: any(isinstance(each, Report) for each in here.agent.heard)])) is None
    first, report = here.agent.heard[:2]
    assert isinstance(first, Here) and (first.role, first.shard) == ("shard", 0)
    assert isinstance(report, Report) and (report.role, report.figures["ends"]) == ("standby", {KEY: 0})


def test_it_follows_a_leader_and_acknowledges_what_is_synced(site: Made) -> None:
    here, source = site(), log(3)
    led(here)

    def story() -> Story:
        yield lambda: len(here.agent.heard) > 1
        leader = here.peer()
        leader.link.send(m.Promise(4))
        yield lambda: leader.of(m.Promised)
        assert leader.heard == [m.Promised(4, 0, {KEY: 0}, marks={})] and here.state.promised == 4
        for message, raw in frames(source, 4):
            leader.link.send(message, (raw,))
        yield lambda: leader.of(m.Synced)
        leader.link.send(m.Complete(4))
        leader.link.send(m.Beat(4, {KEY: 30}))
        yield lambda: leader.of(m.Opened) and leader.of(m.Heard)
        [end] = source.inventory(KEY)
        assert leader.of(m.Synced)[-1] == m.Synced(4, KEY, 30, end.name, end.stop)
        assert here.state.opened == 4

    assert here.run(story()) is None


def test_a_poll_beside_what_the_leader_writes_takes_no_acknowledgement_away(site: Made) -> None:
    here, source = site(), log(1)
    led(here)

    def story() -> Story:
        yield lambda: len(here.agent.heard) > 1
        leader, other = here.peer(), here.peer(N3)
        leader.link.send(m.Promise(4))
        yield lambda: leader.of(m.Promised)
        for message, raw in frames(source, 4):
            leader.link.send(message, (raw,))
        other.link.send(m.Poll())
        yield lambda: other.of(m.Polled) and leader.of(m.Synced)
        assert other.of(m.Polled) == [m.Polled(True, 4, 0, other.of(m.Polled)[0].records)]

    here.run(story())


def test_a_leader_of_an_older_epoch_is_told_so_and_hung_up(site: Made) -> None:
    here = site()
    led(here)

    def story() -> Story:
        yield lambda: len(here.agent.heard) > 1
        new, old = here.peer(), here.peer(N3)
        new.link.send(m.Promise(4))
        yield lambda: new.of(m.Promised)
        old.link.send(m.Promise(3))
        yield lambda: old.link.closed
        assert old.heard == [m.Outdated(4)] and not new.link.closed

    here.run(story())


@pytest.mark.parametrize(
    ("greeting", "says"),
    [
        ({"kind": "bus"}, "n1#1 does not lead shard 0"),
        ({"cluster": "other"}, TO_A_STRANGER),
        ({"shard": 2}, "this is shard 0, not 2"),
        ({"level": 99}, "this node knows feature level 1, the other one has 99: upgrade this one"),
    ],
)
def test_what_is_not_for_a_standby_is_refused_with_the_reason(
    site: Made, greeting: dict[str, object], says: str
) -> None:
    here = site()
    led(here)

    def story() -> Story:
        yield lambda: len(here.agent.heard) > 1
        caller = here.peer(**greeting)
        yield lambda: caller.link.closed
        assert caller.heard == [GreetingRefused(says)]
        told = [fields["why"] for name, fields in here.events if name == "connection.refused"]
        assert len(told) == (greeting != {"kind": "bus"})  # whoever looks for the leader is no stranger

    here.run(story())


def test_before_it_has_met_its_cluster_it_takes_nobody(site: Made) -> None:
    here = site()

    def story() -> Story:
        caller = here.peer()
        yield lambda: caller.link.closed
        [refused] = caller.heard
        assert refused == GreetingRefused(TO_A_STRANGER)
        [(name, fields)] = here.events
        assert name == "connection.refused" and "has not met its cluster" in fields["why"]

    here.run(story())


def test_who_does_not_greet_is_refused(site: Made) -> None:
    here = site()

    def story() -> Story:
        caller = Peer(here.port, m.Poll())
        here.peers.append(caller)
        yield lambda: caller.link.closed
        assert caller.heard == [GreetingRefused(TO_A_STRANGER)]

    here.run(story())


def test_an_order_for_a_leader_is_answered(site: Made) -> None:
    here = site()
    led(here)
    here.agent.first.append(Order(5, "hand-over", 0, to=N3))
    here.run(iter([lambda: any(isinstance(each, OrderResult) for each in here.agent.heard)]))
    [done] = [each for each in here.agent.heard if isinstance(each, OrderResult)]
    assert done == OrderResult(5, "n1#1 does not lead shard 0 now: ask again")


def test_an_agent_that_is_started_again_is_met_again(site: Made) -> None:
    here = site()
    led(here)

    def story() -> Story:
        yield lambda: len(here.agent.heard) > 1
        here.agent.hang_up()
        here.agent.heard.clear()
        yield lambda: any(isinstance(each, Here) for each in here.agent.heard)

    here.run(story())


@pytest.mark.parametrize("known", [True, False])
def test_the_only_copy_takes_office_also_if_the_answer_to_its_claim_is_lost(site: Made, known: bool) -> None:
    here = site(source=log(2))
    grants(here, record(N1, leader="", epoch=3), known=known)
    office = here.run(iter([lambda: False]))
    assert isinstance(office, TakenOffice)
    assert (office.lead.epoch, office.lead.ends) == (4, {KEY: 20})
    assert (here.state.promised, here.state.opened) == (4, 4) and office.links == []
    office.agent.close()


def test_a_copy_in_doubt_claims_nothing(site: Made) -> None:
    here = site(source=log(2))
    here.state.distrust()
    grants(here, record(N1, leader="", epoch=3))

    def story() -> Story:
        yield lambda: sum(isinstance(each, Report) for each in here.agent.heard) >= 2  # a second and more
        assert not [each for each in here.agent.heard if isinstance(each, Claim)]
        assert here.state.opened == DOUBTED

    assert here.run(story()) is None


def test_a_control_plane_that_went_back_is_alarmed_and_gives_out_no_epoch_twice(
    site: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rumq.cluster.replication.standby.epoch_watch.BEHIND_SECONDS", 0.0)
    here = site(source=log(1))
    here.state.promise(9)
    grants(here, record(N1, leader="", epoch=3))
    seen = here.agent.first[0]

    def story() -> Story:
        yield lambda: len(here.agent.heard) > 1
        here.agent.say(seen)
        yield lambda: here.events
        [(name, fields)] = here.events
        assert name == "cluster.epoch_back" and "epoch 3" in fields["why"] and "promised 9" in fields["why"]
        claims = [each.record.epoch for each in here.agent.heard if isinstance(each, Claim)]
        assert set(claims) <= {10}, "above what this disk has promised"

    assert here.run(story()) is None


@pytest.mark.parametrize("secured", [False, True])
def test_of_two_that_are_left_one_leads_with_the_longer_log(
    site: Made, authorities: Authorities, secured: bool
) -> None:
    """n3 and its disk are gone; n2 has ten records more than n1."""
    tls = link_tls(authorities) if secured else None
    here, there = site(N1, source=log(1), tls=tls), site(N2, source=log(2), tls=tls)
    first = record(N1, N2, N3, epoch=3, leader="")
    cas = threading.Lock()
    now = [Versioned(first, 1)]

    def agent_of(own: Site, other: Site) -> None:
        nodes = node_record(other.node, other.port)
        own.agent.first = [Seen(own.view(first, nodes))]

        def answer(message: AgentMessage) -> list[AgentMessage]:
            if not isinstance(message, Claim):
                return []
            with cas:
                won = message.revision == now[0].revision
                if won:
                    now[0] = Versioned(message.record, message.revision + 1)
                return [Claimed(message.request, won, True, now[0])]

        own.agent.answer = answer

    agent_of(here, there)
    agent_of(there, here)
    leads: list[tuple[Site, TakenOffice]] = []
    done = threading.Event()

    def run(own: Site) -> None:
        office = own.run(iter([done.is_set]))
        if office is not None:
            leads.append((own, office))
            done.set()

    thread = threading.Thread(target=run, args=(there,))
    thread.start()
    run(here)
    thread.join()
    [(leader, office)] = leads
    assert office.lead.ends == {KEY: 20} and office.lead.record.leader == leader.node
    assert leader.state.opened == office.lead.epoch == now[0].record.epoch
    for link in office.links:
        link.close()
    office.agent.close()


def test_a_copy_that_cannot_be_written_ends_the_process(site: Made) -> None:
    here, source = site(), log(1)
    led(here)

    def story() -> Story:
        yield lambda: len(here.agent.heard) > 1
        leader = here.peer()
        leader.link.send(m.Promise(4))
        yield lambda: leader.of(m.Promised)
        *_, (message, raw) = frames(source, 4)
        leader.link.send(message, (raw,))  # chunks of a segment that was never begun
        yield lambda: False

    with pytest.raises(LogError, match="none is open"):
        here.run(story())


def test_a_claim_that_an_agent_took_with_it_is_made_anew(site: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rumq.cluster.replication.standby.office.CLAIM_SECONDS", 1e9)
    here = site(source=log(2))
    grants(here, record(N1, leader="", epoch=3))
    grant, asked = here.agent.answer, []

    def answer(message: AgentMessage) -> list[AgentMessage]:
        if isinstance(message, Claim):
            asked.append(message)
            if len(asked) == 1:
                here.agent.hang_up()
                return []
        return grant(message)

    here.agent.answer = answer
    office = here.run(iter([lambda: False]))
    assert isinstance(office, TakenOffice) and len(asked) == 2
    office.agent.close()


@pytest.mark.parametrize("who", ["device", "other node", "other cluster"])
def test_a_promise_is_asked_of_it_by_nodes_alone(site: Made, authorities: Authorities, who: str) -> None:
    files = {
        "device": "client", "other node": authorities.node("c", "n3"), "other cluster": authorities.node("c2", "n2"),
    }  # fmt: skip
    tls = link_tls(authorities)
    here = site(tls=tls)
    led(here)

    def story() -> Story:
        yield lambda: len(here.agent.heard) > 1
        stranger = replace(tls, client=context(authorities, ssl.PROTOCOL_TLS_CLIENT, files[who]))
        peer = Peer(here.port, Greeting("replica", "c", N2, 0, 9), stranger)
        here.peers.append(peer)
        peer.link.send(m.Promise(9))
        yield lambda: peer.link.closed
        assert peer.heard == [GreetingRefused(TO_A_STRANGER)] and here.state.promised == 0
        [(name, fields)] = here.events
        assert name == "connection.refused" and "rumq://c/node/n2" in fields["why"]

    here.run(story())


def test_what_answers_at_a_nodes_address_is_that_node(site: Made, authorities: Authorities) -> None:
    here = site(source=log(1), tls=link_tls(authorities))
    impostor = link_tls(authorities, authorities.node("c", "n9"))
    links: list[FrameLink] = []
    heard: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        grants(here, record(N1, N2, N3, leader="", epoch=3), node_record(N2, listener.getsockname()[1]))

        def told() -> object:
            try:
                links.append(FrameLink(listener.accept()[0], impostor))
            except BlockingIOError:
                pass
            for link in links:
                heard.extend([] if link.closed else link.read())
                link.flush()
            return [fields for name, fields in here.events if name == "cluster.certificate_refused"]

        here.run(iter([told]))
    [fields] = told_of(here, "cluster.certificate_refused")
    assert fields["node"] == N2 and "it shows the certificate of rumq://c/node/n9" in fields["why"]
    assert heard == []
    for link in links:
        link.close()


def told_of(site: Site, event: str) -> list[dict[str, object]]:
    return [fields for name, fields in site.events if name == event]
