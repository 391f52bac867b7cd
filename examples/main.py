"""The main job on real input: devices publish, the log grows, a late subscriber replays, Spark makes a table.

python examples/main.py [--data DIR]
"""

import argparse
import importlib.util
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import paho.mqtt.client as mqtt
import readings

RUMQD = [sys.executable, "-m", "rumq"]


def say(text: str) -> None:
    print(f"\n== {text}", flush=True)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@contextmanager
def broker(port: int, data: str) -> Iterator[None]:
    """rumqd on a port, until the block ends."""
    process = subprocess.Popen(
        [*RUMQD, "run", "--port", str(port), "--data", data, "--set", "events.level=warning"]
    )
    try:
        deadline = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(("localhost", port), 1).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit("rumqd did not start, see above") from None
                time.sleep(0.02)
        yield
    finally:
        process.terminate()
        process.wait(30)


def first_of_replay(port: int, topic_filter: str, count: int) -> list[str]:
    """What a plain MQTT 3.1.1 client gets that comes late and asks for the beginning."""
    got: list[str] = []
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv311)
    client.on_message = lambda _c, _u, message: got.append(f"{message.topic} {message.payload.decode()}")
    client.connect("localhost", port)
    client.subscribe(f"$log/earliest/{topic_filter}")
    deadline = time.monotonic() + 10
    while len(got) < count and time.monotonic() < deadline:
        client.loop(0.1)
    client.disconnect()
    return got[:count]


def table(data: str) -> None:
    if shutil.which("java") is None:
        say("no table: Spark needs Java (Debian: apt-get install openjdk-17-jre-headless)")
    elif importlib.util.find_spec("pyspark") is None:
        say("no table: Spark is not installed (pip install 'rumq[spark]')")
    else:
        say(
            "the same files as a table in Spark: daily minimum, mean and maximum per device (examples/daily.py)"
        )
        subprocess.run([sys.executable, str(Path(__file__).with_name("daily.py")), data], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", help="keep the log here [a temporary directory]")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        data = args.data or f"{temporary}/rumq-data"
        port = free_port()
        say(f"rumqd run --port {port} --data {data}")
        with broker(port, data):
            say("two weather stations publish a year of hourly temperatures each, at QoS 1")
            start = time.monotonic()
            sent = readings.replay("localhost", port)
            print(f"{sent} readings acknowledged, each on disk, in {time.monotonic() - start:.1f} s")
            say("this machine publishes its own readings for three seconds, at QoS 0")
            print(f"{readings.publish_own('localhost', port, 3)} readings sent")
            say("rumqd log ls: the log that every topic is")
            subprocess.run([*RUMQD, "log", "ls", "--data", data], check=True)
            say("a client that comes late subscribes to $log/earliest/weather/# and gets, first of all")
            for line in first_of_replay(port, "weather/#", 3):
                print(line)
            table(data)
    say("done")


if __name__ == "__main__":
    main()
