"""A broker is killed (kill -9) after an order of its operator was answered: the order stays.

docs/reference/session-journal.md"""

import os
import signal

import pytest

from rumq.mqtt.reasons import Reason
from tests.admin_questions import ask
from tests.broker_process import Rumqd
from tests.conformance.peer import Peer
from tests.faults.kill.test_shards import shards_of
from tests.limits.conftest import Run

CLIENTS = [f"c{number}" for number in range(6)]  # with two shards some live in each


def order(broker: Rumqd, question: str, **more: object) -> int:
    answer = ask(str(broker.data), {"ask": question, **more})
    assert "error" not in answer, answer
    done: int = answer["done"]
    return done


def answers(broker: Rumqd) -> set[int]:
    """The reason codes that the clients get."""
    found = set()
    for client_id in CLIENTS:
        with Peer(broker.address) as peer:
            found.add(peer.connect(client_id).code)
    return found


def again(broker: Rumqd) -> None:
    broker.kill()
    broker.start()


@pytest.mark.parametrize("shards", [1, 2])
def test_a_ban_and_a_drain_survive_a_kill_and_so_does_their_end(run: Run, shards: int) -> None:
    broker = run("--set", f"shards.count={shards}")
    for client_id in CLIENTS:
        assert order(broker, "ban", kind="client", name=client_id, seconds=600) == 1
    again(broker)
    assert answers(broker) == {Reason.BANNED}
    assert sum(told["bans"] for told in broker.named("orders.restored")) == shards * len(CLIENTS)
    for client_id in CLIENTS:
        assert order(broker, "unban", kind="client", name=client_id) == 1
    assert order(broker, "drain") == 0
    again(broker)
    assert answers(broker) == {Reason.SERVER_UNAVAILABLE}
    assert broker.stop() == 0
    broker.start()
    assert answers(broker) == {Reason.SERVER_UNAVAILABLE}, "and an ordinary restart"
    assert all(told["draining"] for told in broker.named("orders.restored"))
    assert order(broker, "undrain") == shards
    again(broker)
    assert answers(broker) == {0} and not broker.named("orders.restored")


def test_orders_stay_when_the_number_of_shards_changes(run: Run) -> None:
    broker = run("--set", "shards.count=1")
    for client_id in CLIENTS:
        assert order(broker, "ban", kind="client", name=client_id, seconds=600) == 1
    assert broker.stop() == 0
    broker.flags = ("--set", "shards.count=2")
    broker.start()
    assert answers(broker) == {Reason.BANNED}


def test_a_shard_that_dies_alone_has_its_orders_again(run: Run) -> None:
    broker = run("--set", "shards.count=2")
    for client_id in CLIENTS:
        assert order(broker, "ban", kind="client", name=client_id, seconds=600) == 1
    os.kill(shards_of(broker.process.pid)[1], signal.SIGKILL)
    broker.event("shard.ready")
    assert answers(broker) == {Reason.BANNED}
