"""`rumqd pub` and `rumqd sub` against a real `rumqd run`."""

import base64
import json
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import ENVIRONMENT, SECONDS_MAX, Broker, Ended, command, rumqd


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic of the test's own: the broker is shared, and forgets nothing."""
    return "".join(letter if letter.isalnum() else "-" for letter in request.node.name)


def pub(broker: Broker, *arguments: str, stdin: bytes = b"") -> Ended:
    ended = rumqd("pub", "-h", "127.0.0.1", "-p", broker.port, *arguments, stdin=stdin)
    assert ended.out == ""
    return ended


def sub(broker: Broker, *arguments: str) -> Ended:
    return rumqd("sub", "-h", "127.0.0.1", "-p", broker.port, *arguments)


def replay(broker: Broker, topic: str, count: int, *arguments: str) -> str:
    """What the log holds of the topic."""
    ended = sub(broker, topic, "--from", "earliest", "-C", str(count), *arguments)
    assert (ended.status, ended.err) == (0, "")
    return ended.out


@pytest.mark.parametrize("version", ["5", "3.1.1"])
@pytest.mark.parametrize("qos", ["0", "1", "2"])
def test_what_is_published_can_be_read_again(broker: Broker, topic: str, version: str, qos: str) -> None:
    for text in ("one", "two"):
        assert pub(broker, topic, "-m", text, "-q", qos, "-V", version) == Ended(0, "", "")
    assert replay(broker, topic, 2, "-V", version, "-q", qos) == "one\ntwo\n"


def test_a_subscriber_goes_on_live_after_its_replay(broker: Broker, topic: str) -> None:
    pub(broker, topic, "-m", "before", "-q", "1")
    process = subprocess.Popen(
        command("sub", "-p", broker.port, topic, "--from", "-1h", "-C", "2"),
        stdout=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"before\n"  # told at once, not when a buffer is full
    pub(broker, topic, "-m", "after", "-q", "1")
    assert process.stdout.readline() == b"after\n"
    assert process.wait(SECONDS_MAX) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_sub_with_status_0(broker: Broker, topic: str, number: signal.Signals) -> None:
    pub(broker, topic, "-m", "x", "-q", "1")
    process = subprocess.Popen(
        command("sub", "-p", broker.port, topic, "--from", "earliest"),
        stdout=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    assert process.stdout is not None and process.stdout.readline() == b"x\n"
    process.send_signal(number)
    assert process.wait(SECONDS_MAX) == 0


def test_lines_of_standard_input_are_messages(broker: Broker, topic: str) -> None:
    assert pub(broker, topic, "-l", "-q", "1", stdin=b"a\r\nb\n\nlast").status == 0
    assert replay(broker, topic, 4, "-F", "<%p>") == "<a>\n<b>\n<>\n<last>\n"


def test_a_file_or_all_of_standard_input_or_nothing_is_a_payload(broker: Broker, topic: str, tmp_path: Path) -> None:
    (tmp_path / "payload").write_bytes(b"from\na file")
    assert pub(broker, topic, "-f", str(tmp_path / "payload"), "-q", "1").status == 0
    assert pub(broker, topic, "-s", "-q", "1", stdin=b"from\nstdin").status == 0
    assert pub(broker, topic, "-n", "-q", "1").status == 0
    assert replay(broker, topic, 3, "-N", "-F", "[%p]") == "[from\na file][from\nstdin][]"


def test_repeat_publishes_again_and_again(broker: Broker, topic: str) -> None:
    assert pub(broker, topic, "-m", "x", "--repeat", "2500", "-q", "1").status == 0
    assert replay(broker, topic, 2500, "-F", "%o").split() == [str(number) for number in range(2500)]


def test_properties_go_with_a_message_and_json_shows_them(broker: Broker, topic: str) -> None:
    wish = ["--property", "content-type=text/plain", "--property", "message-expiry-interval=3600"]
    wish += ["--property", "correlation-data=42", "--user-property", "unit=C"]
    assert pub(broker, topic, "-m", "21.5", "-q", "1", *wish).status == 0
    [line] = replay(broker, topic, 1, "--json", "-q", "1").splitlines()
    shown = json.loads(line)
    assert (shown["topic"], shown["payload"], shown["qos"], shown["offset"]) == (topic, "21.5", 1, 0)
    assert shown["properties"]["content_type"] == "text/plain"
    assert ["unit", "C"] in shown["properties"]["user_properties"]
    assert shown["time"].endswith("Z") and isinstance(shown["lsn"], int)


def test_a_trace_is_begun_with_its_id_told_and_the_subscriber_shows_it(broker: Broker, topic: str) -> None:
    done = pub(broker, topic, "-m", "21.5", "-q", "1", "--trace", "--user-property", "unit=C")
    name, trace = done.err.split()
    shown = json.loads(replay(broker, topic, 1, "--json"))["properties"]["user_properties"]
    assert done.status == 0 and name == "trace" and ["unit", "C"] in shown
    (parent,) = [value for key, value in shown if key == "traceparent"]
    assert parent.startswith(f"00-{trace}-") and parent.endswith("-01") and len(trace) == 32


def test_a_payload_that_is_no_text_survives(broker: Broker, topic: str, tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(raw := bytes(range(256)))
    pub(broker, topic, "-f", str(tmp_path / "raw"), "-q", "1")
    assert base64.b64decode(json.loads(replay(broker, topic, 1, "--json"))["payload_base64"]) == raw
    assert bytes.fromhex(replay(broker, topic, 1, "-F", "%x")) == raw


def test_retained_messages_come_first_unless_they_are_not_wanted(broker: Broker, topic: str) -> None:
    pub(broker, topic, "-m", "kept", "-r", "-q", "1")
    assert sub(broker, topic, "-C", "1", "-F", "%r %p").out == "1 kept\n"
    assert sub(broker, topic, "-R", "-W", "1").out == ""


def test_waiting_ends_with_status_0_and_1_if_the_count_was_not_reached(broker: Broker, topic: str) -> None:
    """The two tests here that let a second pass: it is what -W is for."""
    assert sub(broker, topic, "-W", "1").status == 0
    assert sub(broker, topic, "-W", "1", "-C", "1").status == 1


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_a_session_that_outlives_the_command_goes_on_behind_the_last_line_printed(
    broker: Broker, topic: str, version: str
) -> None:
    join = [topic, "-q", "1", "-i", f"desk-{version}", "--session-expiry", "600", "-C", "1", "-V", version]
    pub(broker, topic, "-m", "0", "-r", "-q", "1")
    assert sub(broker, *join).out == "0\n"
    pub(broker, topic, "-l", "-q", "1", stdin=b"1\n2\n3\n")
    rest = [sub(broker, *join, "-R").out for _ in range(3)]
    assert rest == ["1\n", "2\n", "3\n"]


def test_topics_may_be_given_as_in_mosquitto_too(broker: Broker, topic: str) -> None:
    assert pub(broker, "-t", f"{topic}/a", "-m", "1", "-q", "1").status == 0
    assert pub(broker, f"{topic}/b", "-m", "2", "-q", "1").status == 0
    ended = sub(broker, "-t", f"{topic}/a", "-t", f"{topic}/b", "--from", "earliest", "-C", "2", "-v")
    assert sorted(ended.out.splitlines()) == [f"{topic}/a 1", f"{topic}/b 2"]


def test_a_refused_subscription_says_why(broker: Broker) -> None:
    ended = sub(broker, "a/#", "--from", "yesterday", "-C", "1")
    assert ended.status == 1 and ended.out == ""
    assert ended.err.startswith("rumqd: the broker refused SUBSCRIBE to a/#: 0x8F")
    assert "earliest" in ended.err  # what is allowed


def test_no_broker_is_one_line_and_status_1() -> None:
    with socket.socket() as closed:  # bound, so that nobody else listens there
        closed.bind(("127.0.0.1", 0))
        port = str(closed.getsockname()[1])
        for arguments in (["pub", "a", "-m", "x"], ["sub", "a"]):
            ended = rumqd(*arguments, "-h", "127.0.0.1", "-p", port)
            assert ended.status == 1
            assert ended.err.startswith("rumqd: no connection: ") and ended.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["pub", "-m", "x"], "expected a topic"),
        (["pub", "a/#", "-m", "x"], "wildcard"),
        (["pub", "a"], "one of the arguments"),
        (["pub", "a", "-m", "x", "-n"], "not allowed with"),
        (["pub", "a", "-f", "/no/such/file"], "cannot be read"),
        (["pub", "a", "-m", "x", "-q", "3"], "invalid choice"),
        (["pub", "a", "-m", "x", "--property", "colour=red"], "no such property; expected one of"),
        (["pub", "a", "-m", "x", "--property", "message-expiry-interval=soon"], "expected a whole number"),
        (["pub", "a", "-m", "x", "--property", "response-topic=a/#"], "wildcard"),
        (["pub", "a", "-m", "x", "--user-property", "unit"], "expected name=value"),
        (["pub", "a", "-m", "x", "--user-property", "a=b", "-V", "3.1.1"], "properties need MQTT 5"),
        (["pub", "a", "-m", "x", "--trace", "-V", "3.1.1"], "properties need MQTT 5"),
        (["sub"], "expected a topic filter"),
        (["sub", "a#"], "not a whole level"),
        (["sub", "a", "-F", "%z"], "expected one of %%, %t, %p"),
        (["sub", "a", "--session-expiry", "60"], "needs an id: -i ID"),
        (["sub", "a", "-C", "0"], "expected a whole number, 1 to"),
        (["sub", "a", "-p", "70000"], "expected a whole number, 1 to 65535"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_sent(arguments: list[str], problem: str) -> None:
    ended = rumqd(*arguments)
    assert ended.status == 2 and problem in ended.err and "Traceback" not in ended.err
