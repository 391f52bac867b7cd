"""The main job on real input: devices publish, the log grows, a late subscriber replays, Spark makes a table.

python examples/main.py [--data DIR] [--stay]
"""

import argparse
import importlib.util
import math
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
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
def broker(port: int, data: str, *flags: str) -> Iterator["subprocess.Popen[str]"]:
    """rumqd on a port, until the block ends. Ctrl-C is for this program, which then stops it."""
    process = subprocess.Popen(
        [*RUMQD, "run", "--port", str(port), "--data", data, "--set", "events.level=warning", *flags],
        stdout=subprocess.PIPE, text=True, process_group=0,
    )  # fmt: skip
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
        yield process
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def table(data: str) -> Iterator[Callable[[], None]]:
    """Spark starts beside what happens until its table is asked for, which is what the block is given."""
    if shutil.which("java") is None:
        yield lambda: say("no table: Spark needs Java (Debian: apt-get install openjdk-17-jre-headless)")
        return
    if importlib.util.find_spec("pyspark") is None:
        yield lambda: say("no table: Spark is not installed (pip install 'rumq[spark]')")
        return
    command = [sys.executable, str(Path(__file__).with_name("daily.py")), data, "--wait"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, process_group=0)

    def show() -> None:
        say("the same files as a table in Spark: daily minimum, mean and maximum per device (examples/daily.py)")
        process.communicate(b"\n")
        if process.returncode:
            raise SystemExit("Spark made no table, see above")

    try:
        yield show
    finally:
        process.terminate()  # it has ended, unless something went wrong
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


def stay(port: int, address: str, token: str) -> None:
    """Publish this machine's readings until Ctrl-C, for the page to show."""
    say("this machine goes on publishing its readings, ten times a second, until Ctrl-C")
    print(f"""the page       {address}
its token      {token}
from a shell   mosquitto_sub -p {port} -v -t 'machine/#'""", flush=True)  # fmt: skip
    readings.publish_own("localhost", port, math.inf)


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", help="keep the log here [a temporary directory]")
    parser.add_argument("--stay", action="store_true", help="then go on, with the web page, until Ctrl-C")
    args = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP):  # the broker and Spark end with this program
        if signal.getsignal(number) != signal.SIG_IGN:  # of nohup
            signal.signal(number, interrupt)
    with tempfile.TemporaryDirectory() as temporary:
        data = args.data or f"{temporary}/rumq-data"
        port = free_port()
        flags = ["--page"] if args.stay else []
        try:
            story(port, data, flags)
        except KeyboardInterrupt:
            print()
    say("done")


def story(port: int, data: str, flags: list[str]) -> None:
    say(" ".join(["rumqd run --port", str(port), "--data", data, *flags]))
    with broker(port, data, *flags) as process, table(data) as show_table:
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
        show_table()
        if flags:
            assert process.stdout is not None
            address, token = (process.stdout.readline().split()[1] for _ in range(2))  # as rumqd run --page prints them
            stay(port, address, token)


if __name__ == "__main__":
    main()
