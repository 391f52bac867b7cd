"""mosquitto_pub and mosquitto_sub, MQTT 3.1, 3.1.1 and 5."""

import shutil
import subprocess

import pytest

from tests.broker_process import Address

SECONDS_MAX = "30"
NUMBERS = [str(n) for n in range(10)]
VERSIONS = pytest.mark.parametrize("version", ["mqttv31", "mqttv311", "mqttv5"])
pytestmark = [
    pytest.mark.mosquitto,
    pytest.mark.skipif(shutil.which("mosquitto_sub") is None, reason="Debian's mosquitto-clients is not installed"),
]


def command(name: str, at: Address, *args: str) -> list[str]:
    return [name, "-h", at.host, "-p", str(at.port), *args]


def pub(at: Address, *args: str, lines: list[str] | None = None) -> None:
    """mosquitto_pub; lines: one message each."""
    typed = None if lines is None else "".join(f"{line}\n" for line in lines)
    subprocess.run(
        command("mosquitto_pub", at, *args, *(["-l"] if lines else [])),
        input=typed,
        text=True,
        check=True,
        timeout=60,
    )


class Sub:
    """mosquitto_sub, subscribed, or gone if it had enough before. form: what it prints of each message"""

    def __init__(self, at: Address, *args: str, form: str = "%p") -> None:
        # Debug output says when it is subscribed; "> " tells messages from it.
        more = ["-d", "-W", SECONDS_MAX, "-F", f"> {form}", *args]
        self.process = subprocess.Popen(
            ["stdbuf", "-oL", *command("mosquitto_sub", at, *more)], stdout=subprocess.PIPE, text=True
        )
        self.early: list[str] = []
        for line in self.lines():
            self.early += [line]
            if "received SUBACK" in line:
                break

    def lines(self) -> list[str]:
        assert self.process.stdout is not None
        return self.process.stdout  # type: ignore[return-value]

    def told(self) -> list[str]:
        """Every message until it ends, as -C or -W has it."""
        found = [line[2:].rstrip("\n") for line in [*self.early, *self.lines()] if line.startswith("> ")]
        self.process.wait(60)
        return found

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@VERSIONS
@pytest.mark.parametrize("qos", ["0", "1", "2"])
def test_messages_arrive_in_order(broker: Address, topic: str, version: str, qos: str) -> None:
    listening = Sub(broker, "-V", version, "-t", f"{topic}/#", "-q", qos, "-C", "10", form="%t %q %r %p")
    pub(broker, "-V", version, "-t", f"{topic}/x", "-q", qos, lines=NUMBERS)
    assert listening.told() == [f"{topic}/x {qos} 0 {n}" for n in NUMBERS]


@VERSIONS
def test_a_session_gets_what_came_while_it_was_away(broker: Address, topic: str, version: str) -> None:
    # Its id, because MQTT 3.1 allows 23 characters; the session outlives the connection, killed or not.
    lasting = [
        "-V",
        version,
        "-c",
        "-i",
        f"away-{version}-{topic.split('/')[1]}"[:23],
        "-q",
        "1",
        "-t",
        topic,
    ]
    if version == "mqttv5":
        lasting += ["-x", "300"]
    Sub(broker, *lasting).kill()
    pub(broker, "-t", topic, "-q", "1", lines=NUMBERS)
    assert Sub(broker, *lasting, "-C", "10").told() == NUMBERS


@VERSIONS
def test_the_will_of_one_that_is_killed_is_published(broker: Address, topic: str, version: str) -> None:
    watcher = Sub(broker, "-t", topic, "-q", "1", "-C", "1")
    will = ["--will-topic", topic, "--will-payload", "gone", "--will-qos", "1"]
    Sub(broker, "-V", version, "-t", f"{topic}/other", *will).kill()
    assert watcher.told() == ["gone"]


@VERSIONS
def test_a_retained_message_greets(broker: Address, topic: str, version: str) -> None:
    pub(broker, "-V", version, "-t", topic, "-m", "state", "-r", "-q", "1")
    assert Sub(broker, "-V", version, "-t", topic, "-C", "1", form="%r %p").told() == ["1 state"]


def test_mqtt_5_properties_pass_through(broker: Address, topic: str) -> None:
    numbered = ["-D", "subscribe", "subscription-identifier", "77"]
    form = "%P|%R|%D|%C|%F|%S|%E|%p"
    listening = Sub(broker, "-V", "mqttv5", "-t", topic, "-C", "1", *numbered, form=form)
    sent = {
        "response-topic": "answers/here",
        "correlation-data": "c",
        "content-type": "text/plain",
        "payload-format-indicator": "1",
        "message-expiry-interval": "1000",
    }
    given = [word for name, value in sent.items() for word in ("-D", "publish", name, value)]
    given += ["-D", "publish", "user-property", "a", "1", "-D", "publish", "user-property", "b", "2"]
    pub(broker, "-V", "mqttv5", "-t", topic, "-m", "x", *given)
    (line,) = listening.told()
    *told, expiry, payload = line.split("|")
    assert told == ["a:1 b:2", "answers/here", "c", "text/plain", "1", "77"]
    assert 900 < int(expiry) <= 1000 and payload == "x"


def test_a_topic_alias_stands_for_its_topic(broker: Address, topic: str) -> None:
    listening = Sub(broker, "-V", "mqttv5", "-t", topic, "-C", "10")
    pub(broker, "-V", "mqttv5", "-t", topic, "-D", "publish", "topic-alias", "3", lines=NUMBERS)
    assert listening.told() == NUMBERS


@VERSIONS
def test_a_replay_brings_everything_and_lives_on(log_broker: Address, topic: str, version: str) -> None:
    pub(log_broker, "-t", topic, "-q", "1", lines=NUMBERS)
    late = Sub(log_broker, "-V", version, "-t", f"$log/earliest/{topic}", "-C", "11", form="%t %p")
    pub(log_broker, "-t", topic, "-m", "live", "-q", "1")
    assert late.told() == [f"{topic} {n}" for n in [*NUMBERS, "live"]]


def test_a_replay_asked_for_by_a_user_property_says_where_its_messages_stand(log_broker: Address, topic: str) -> None:
    pub(log_broker, "-t", topic, "-q", "1", lines=NUMBERS)
    asking = ["-V", "mqttv5", "-t", topic, "-C", "3", "-D", "subscribe", "user-property", "rumq-from", "7"]
    told = Sub(log_broker, *asking, form="%p %P").told()
    assert [line.split(" ")[0] for line in told] == ["7", "8", "9"]
    for line in told:
        names = [pair.partition(":")[0] for pair in line.split(" ")[1:]]
        assert sorted(names) == ["rumq-lsn", "rumq-offset", "rumq-partition", "rumq-time"]


@VERSIONS
def test_a_bad_place_ends_mosquitto_sub(log_broker: Address, topic: str, version: str) -> None:
    """It leaves when all its subscriptions were refused."""
    asking = command("mosquitto_sub", log_broker, "-V", version, "-t", f"$log/never/{topic}", "-W", SECONDS_MAX)
    done = subprocess.run(asking, capture_output=True, text=True, timeout=60, check=False)
    assert "All subscription requests were denied" in done.stderr
