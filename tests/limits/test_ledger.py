"""published = delivered + pending + counted, as a broker that runs answers when it is asked."""

import subprocess
import sys
from typing import Any

import msgspec

from tests.broker_process import ENVIRONMENT, SECONDS_MAX, Rumqd
from tests.conformance.wire import Prop
from tests.limits.conftest import Dial, Run

LASTING = [(Prop.SESSION_EXPIRY, 3600)]


def ask(broker: Rumqd, question: str, *flags: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "rumq", "ask", question, "--json", "--data", str(broker.data), *flags],
        capture_output=True, timeout=SECONDS_MAX, env=ENVIRONMENT, check=True,
    )  # fmt: skip
    return msgspec.json.decode(done.stdout)


def undelivered(broker: Rumqd, client_id: str) -> dict[str, int]:
    rows = ask(broker, "ledger")["undelivered"]
    return {row["reason"]: row["records"] for row in rows if row["client_id"] == client_id}


def test_each_message_is_delivered_pending_or_counted(run: Run, join: Dial) -> None:
    broker = run()
    small = join(broker, "small", properties=[*LASTING, (Prop.MAXIMUM_PACKET_SIZE, 200)])
    small.subscribe("t", qos=1)
    publisher = join(broker, "p")
    published = 0
    for number in range(10):
        publisher.publish("t", b"%d" % number, qos=1)
        publisher.publish("t", b"%d" % number + bytes(500), qos=1)  # larger than it takes
        published += 2
    assert small.payloads(10) == [b"%d" % n for n in range(10)]
    small.expect_silence()
    assert undelivered(broker, "small") == {"over_limit": 10}

    small.leave()
    for number in range(5):
        publisher.publish("t", b"%d" % number, qos=1)
        published += 1
    (client,) = ask(broker, "clients", "--client", "small")["clients"]
    delivered, pending = client["delivered"], client["behind_records"] + client["in_flight"]
    assert (delivered, pending) == (10, 5)
    assert published == delivered + pending + sum(undelivered(broker, "small").values())


def test_an_expired_message_is_counted(run: Run, join: Dial) -> None:
    broker = run()
    late = join(broker, "late", properties=LASTING)
    late.subscribe("t", qos=1)
    late.leave()
    publisher = join(broker, "p")
    publisher.publish("t", b"short", qos=1, properties=[(Prop.MESSAGE_EXPIRY, 1)])
    publisher.publish("t", b"long", qos=1, properties=[(Prop.MESSAGE_EXPIRY, 1000)])
    watcher = join(broker, "w", properties=[(Prop.SESSION_EXPIRY, 1)])
    watcher.leave()
    broker.event("session.expired")  # so that a second has passed
    late = join(broker, "late", clean=False, properties=LASTING)
    assert late.payloads(1) == [b"long"]
    late.expect_silence()
    assert undelivered(broker, "late") == {"expired": 1}


def test_retention_waits_for_a_lasting_session_up_to_its_limit(run: Run, join: Dial) -> None:
    kept = 1 << 20
    broker = run(
        "--set", "log.segment_bytes_max=65536", "--set", "log.retention_bytes_max=131072",
        "--set", f"log.retain_for_sessions_bytes_max={kept}",
    )  # fmt: skip
    away = join(broker, "away", properties=LASTING)
    away.subscribe("t", qos=1)
    away.leave()
    publisher = join(broker, "p")
    for number in range(100):
        publisher.publish("t", b"%d" % number + bytes(5000), qos=1)
    for _ in range(2):  # a second goes by, in which retention has looked
        brief = join(broker, "brief", properties=[(Prop.SESSION_EXPIRY, 1)])
        brief.leave()
    broker.event("session.expired")
    assert not broker.named("log.trimmed")
    away = join(broker, "away", clean=False, properties=LASTING)
    assert [m[:3].rstrip(b"\0") for m in away.payloads(100)] == [b"%d" % n for n in range(100)]
    away.leave()
    for number in range(400):
        publisher.publish("t", b"%d" % number + bytes(5000), qos=1)
    broker.event("log.trimmed")
    away = join(broker, "away", clean=False, properties=LASTING)
    lost = told_as_lost(broker, join)
    assert 0 < lost < 400 - kept // 10_000, "more than the limit is not kept, nor less"
    assert away.payloads(400 - lost)[-1].startswith(b"399")


def told_as_lost(broker: Rumqd, join: Dial) -> int:
    """By the events of the session `away`, all of which have been heard once the next client has been told of."""
    join(broker, "behind")
    broker.heard(lambda event: event["event"] == "client.connected" and event["client_id"] == "behind")
    gaps = broker.named("log.gap")
    assert {gap["client_id"] for gap in gaps} == {"away"}
    return sum(int(gap["records"]) for gap in gaps)


def test_records_that_retention_took_are_counted(run: Run, join: Dial) -> None:
    broker = run("--set", "log.segment_bytes_max=65536", "--set", "log.retention_bytes_max=131072")
    away = join(broker, "away", properties=LASTING)
    away.subscribe("t", qos=1)
    away.leave()
    publisher = join(broker, "p")
    for number in range(200):
        publisher.publish("t", b"%d" % number + bytes(5000), qos=1)
    broker.event("log.trimmed")
    away = join(broker, "away", clean=False, properties=LASTING)
    lost = told_as_lost(broker, join)
    got = away.payloads(200 - lost)
    assert got[-1].startswith(b"199")
    assert undelivered(broker, "away") == {"retention": lost}
    (row,) = ask(broker, "ledger", "--client", "away")["undelivered"]
    assert row["topic"] == "t"
    told = [str(said[1]) for said in away.connack.all(Prop.USER_PROPERTY) if isinstance(said, tuple)]
    next_lsn = 0
    for where, lsns, records, why in map(str.split, told):
        first, last = map(int, lsns.split("-"))
        assert (where, first, int(records), why) == ("main/g1/p0", next_lsn, last + 1 - first, "retention")
        next_lsn = last + 1
    assert next_lsn == lost
