"""Functions of a real broker: what fails fails alone and has its rule, and each record has its result once, whatever is
killed."""

import contextlib
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import trio

import rumq
from rumq.client import Outgoing, connect
from rumq.embedded.broker import BlockingBroker, EmbeddedBroker
from rumq.functions.function_counts import read_figures

SECONDS_MAX = 120.0
PLANT = """
import os, time
import pyarrow as pa
import pyarrow.compute as pc


def shout(batch):
    table = pa.table(batch)
    payload = pc.utf8_upper(table["payload"].cast(pa.string())).cast(pa.binary())
    return table.set_column(table.schema.get_field_index("payload"), "payload", payload)


def cold(batch):
    '''Transform, enrich and drop: only readings below 20, to a topic of their own.'''
    table = pa.table(batch)
    celsius = pc.cast(table["payload"].cast(pa.string()), pa.float64())
    topics = pc.binary_join_element_wise("cold", table["topic"], "/")
    return pa.table({"topic": topics, "payload": table["payload"]}).filter(pc.less(celsius, 20))


def poisoned(batch):
    payloads = batch.column("payload").to_pylist()
    if b"stall" in payloads:
        time.sleep(3600)
    if b"raise" in payloads:
        raise ValueError("no number: raise")
    if b"leak" in payloads:
        kept = [bytes(16 << 20) for _ in range(1000)]
    if b"exit" in payloads:
        os._exit(7)
    return shout(batch)


def switched(batch):
    if os.path.exists(os.environ["RUMQ_TEST_SWITCH"]):
        raise RuntimeError("switched off")
    return shout(batch)


def slow(batch):
    time.sleep(0.05)
    return shout(batch)
"""

RULES = """
[[rule]]
allow = ["publish"]
topics = ["plant/#"]

[[rule]]
users = ["robot"]
allow = ["publish", "subscribe", "retain"]
topics = ["derived/#", "rumq/function/#"]
"""


def function(folder: Path, name: str, **more: Any) -> dict[str, Any]:
    (folder / "plant.py").write_text(PLANT)
    own = {"name": name, "filters": ["plant/#"], "code": f"{folder}/plant.py:{name}", "prefix": "derived/"}
    return {**own, "timeout_ms": 20_000, **more}


def publish(broker: EmbeddedBroker, *messages: tuple[str, str]) -> None:
    """Each is acknowledged when this returns."""

    async def main() -> None:
        async with connect(broker.url, reconnect=True) as client:
            await client.publish_batch([Outgoing(topic, payload.encode(), 1) for topic, payload in messages])

    trio.run(main)


def stored(broker: EmbeddedBroker, topic_filter: str = "derived/#") -> list[tuple[str, str]]:
    """Topics and payloads of the log, in its order."""
    with contextlib.suppress(LookupError):
        rows = rumq.read(broker.data, topic_filter, columns=["topic", "payload"]).to_arrow().to_pylist()
        return [(row["topic"], row["payload"].decode()) for row in rows]
    return []


def waited(look: Callable[[], Any]) -> Any:
    """What it is once it is true."""
    until = time.monotonic() + SECONDS_MAX
    while not (found := look()):
        assert time.monotonic() < until, "it never was"
        time.sleep(0.02)
    return found


def processes(broker: EmbeddedBroker) -> tuple[psutil.Process, list[psutil.Process]]:
    """The function process and its workers."""
    broker_pid = broker.events("broker.starting")[-1]["pid"]

    def look() -> Any:
        for each in psutil.Process(broker_pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if "functions" in each.cmdline():
                    return each
        return None

    found = waited(look)
    return found, found.children()


def figures(broker: EmbeddedBroker, name: str) -> dict[str, Any]:
    return read_figures(broker.data / "_functions").get(name, {})


def test_what_it_returns_is_published(tmp_path: Path) -> None:
    both = [function(tmp_path, "shout"), function(tmp_path, "cold", prefix="below-20/")]
    with rumq.broker(function=both) as broker:
        publish(broker, ("plant/1", "19.5"), ("plant/2", "21"), ("other/1", "x"), ("plant/1", "18"))
        waited(lambda: len(stored(broker)) == 3 and len(stored(broker, "below-20/#")) == 2)
        assert stored(broker) == [("derived/plant/1", "19.5"), ("derived/plant/2", "21"), ("derived/plant/1", "18")]
        assert stored(broker, "below-20/#") == [("below-20/cold/plant/1", "19.5"), ("below-20/cold/plant/1", "18")]
        assert waited(lambda: figures(broker, "cold").get("results") == 2)


@pytest.mark.parametrize(
    ("poison", "kind", "why"),
    [
        ("raise", "raised", "ValueError: no number: raise"),
        ("stall", "stalled", "no result within 2 s"),
        ("leak", "memory", "MemoryError"),
        ("exit", "died", "exit status 7"),
    ],
)
@pytest.mark.parametrize("rule", ["pass", "refuse"])
def test_a_batch_that_it_cannot_do_has_its_rule_and_the_next_ones_go_on(
    poison: str, kind: str, why: str, rule: str, tmp_path: Path
) -> None:
    own = function(tmp_path, "poisoned", on_failure=rule, timeout_ms=2000, memory_bytes_max=64 << 20)
    with rumq.broker(function=[own]) as broker:
        publish(broker, ("plant/1", "a"))
        waited(lambda: len(stored(broker)) == 1)
        publish(broker, ("plant/1", poison))
        waited(lambda: broker.events("function.failed"))
        publish(broker, ("plant/1", "b"))
        waited(lambda: ("derived/plant/1", "B") in stored(broker))
        passed = [("derived/plant/1", poison)] if rule == "pass" else []
        assert stored(broker) == [("derived/plant/1", "A"), *passed, ("derived/plant/1", "B")]
        (failed,) = broker.events("function.failed")
        assert (failed["kind"], failed["rule"], failed["records"], failed["level"]) == (kind, rule, 1, "warning")
        assert why in failed["why"]
        restarts = broker.events("function.restarted")
        assert len(restarts) == (0 if kind == "raised" else 1), "what may be the worker's is tried by another one"
        waited(lambda: figures(broker, "poisoned")["passed" if rule == "pass" else "refused"] == 1)
        assert figures(broker, "poisoned")["failures"][kind] == 1
        assert not broker.events("functions.died", "broker.turn_slow")


def test_what_is_held_goes_on_once_the_function_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    switch = tmp_path / "off"
    switch.touch()
    own = function(tmp_path, "switched")
    own["code"] = own["code"].replace("plant.py", "held.py")
    (tmp_path / "held.py").write_text(PLANT.replace('os.environ["RUMQ_TEST_SWITCH"]', repr(str(switch))))
    with rumq.broker(function=[own]) as broker:
        publish(broker, ("plant/1", "a"), ("plant/1", "b"))
        waited(lambda: len(broker.events("function.failed")) >= 2)
        waited(lambda: figures(broker, "switched").get("held") == 1)
        assert stored(broker) == []
        switch.unlink()
        waited(lambda: len(stored(broker)) == 2)
        assert stored(broker) == [("derived/plant/1", "A"), ("derived/plant/1", "B")]
        waited(lambda: figures(broker, "switched")["held"] == 0)


def test_one_function_that_stalls_holds_up_no_other(tmp_path: Path) -> None:
    own = [function(tmp_path, "poisoned", prefix="p/", timeout_ms=600_000), function(tmp_path, "shout")]
    with rumq.broker(function=own) as broker:
        publish(broker, ("plant/1", "stall"), ("plant/1", "a"))
        waited(lambda: len(stored(broker)) == 2)
        assert stored(broker, "p/#") == []


def test_it_publishes_as_its_user_and_no_more_than_that_one_may(tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text(RULES)
    own = [function(tmp_path, "shout", user="robot"), function(tmp_path, "cold", prefix="below-20/")]
    with rumq.broker(function=own, auth={"rules_file": str(rules)}) as broker:
        publish(broker, ("plant/1", "19"))
        waited(lambda: stored(broker))
        waits = waited(lambda: broker.events("function.waits"))[0]
        assert waits["name"] == "cold" and "refused" in waits["why"]
        assert stored(broker, "below-20/#") == []


@pytest.mark.parametrize("seed", [1, 2])
def test_each_record_has_its_result_once_whatever_is_killed(seed: int, tmp_path: Path) -> None:
    """SIGKILL of the worker, of the function process, of the broker, at any moment; in order, each once."""
    chance = random.Random(seed)
    own = function(tmp_path, "slow", records_max=7)
    count = 240
    with rumq.broker(function=[own], shards={"count": seed}) as broker:
        for start in range(0, count, 40):
            publish(broker, *((f"plant/{n % 3}", f"reading {n}") for n in range(start, start + 40)))
            time.sleep(chance.random() * 0.4)  # so that it is killed anywhere
            kill_one(broker, chance)
        waited(lambda: len(stored(broker)) >= count)
        found = stored(broker)
        for number in range(3):
            topic = f"derived/plant/{number}"
            wanted = [f"READING {n}" for n in range(count) if n % 3 == number]
            assert [payload for each, payload in found if each == topic] == wanted


def kill_one(broker: BlockingBroker, chance: random.Random) -> None:
    match chance.choice(["worker", "process", "broker"]):
        case "broker":
            broker.kill()
            broker.restart()
        case "process":
            processes(broker)[0].kill()
        case "worker":
            for each in processes(broker)[1]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    each.kill()


def test_nothing_is_left_when_the_broker_is_killed(tmp_path: Path) -> None:
    with rumq.broker(function=[function(tmp_path, "shout")]) as broker:
        publish(broker, ("plant/1", "a"))
        waited(lambda: stored(broker))
        parent, workers = processes(broker)
        assert len(workers) == 1
        broker.kill()
        gone, alive = psutil.wait_procs([parent, *workers], SECONDS_MAX)
        assert len(gone) == 2 and not alive


def test_two_processes_for_one_broker_are_refused(tmp_path: Path) -> None:
    with rumq.broker(function=[function(tmp_path, "shout")]) as broker:
        publish(broker, ("plant/1", "a"))
        waited(lambda: stored(broker))
        config = str(broker.data.parent / "config.toml")
        command = [sys.executable, "-m", "rumq", "functions", "run", "--config", config]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
        assert done.returncode == 1 and "another process runs the functions" in done.stderr


def test_without_pyarrow_it_is_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "plant.py").write_text(PLANT)
    text = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from rumq.settings.load import load_settings\n"
        "from rumq.process.wiring.function_settings import check_functions\n"
        f"own = {function(tmp_path, 'shout')!r}\n"
        "check_functions(load_settings(tree=('test', {'function': [own]})).settings)\n"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert "pip install 'rumq[parquet]'" in done.stderr
