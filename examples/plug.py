"""Pull the plug: publish under load, kill -9 the broker, start it again, and count what was acknowledged.

python examples/plug.py [--data DIR] [--times N]

The publisher is paho-mqtt with QoS 1 and its own record of the acknowledgements; the proof is `rumqd sub --from`."""

import argparse
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import paho.mqtt.client as mqtt
from main import RUMQD, free_port, say


class Publisher:
    """Numbers 0, 1, 2 ...: which were acknowledged, over any number of connections."""

    def __init__(self) -> None:
        self.acknowledged: set[int] = set()
        self.next = 0

    def run(self, port: int, seconds: float, process: "subprocess.Popen[bytes]") -> None:
        """Publish as fast as the broker acknowledges; kill it after so long, in the middle of it."""
        client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
        client.max_inflight_messages_set(200)
        client.connect("127.0.0.1", port)
        client.loop_start()
        waiting: deque[tuple[mqtt.MQTTMessageInfo, int]] = deque()
        stop = time.monotonic() + seconds
        while time.monotonic() < stop:
            while len(waiting) < 1000:
                waiting.append((client.publish("plug/numbers", str(self.next), qos=1), self.next))
                self.next += 1
            self._take(waiting)
        process.kill()
        process.wait()
        client.loop_stop()
        self._take(waiting)

    def _take(self, waiting: "deque[tuple[mqtt.MQTTMessageInfo, int]]") -> None:
        """PUBACKs come in the order of publishing."""
        while waiting and waiting[0][0].is_published():
            self.acknowledged.add(waiting.popleft()[1])
        time.sleep(0.0005)


def started(port: int, data: str) -> "subprocess.Popen[bytes]":
    """rumqd, once it says that it is ready."""
    process = subprocess.Popen([*RUMQD, "run", "--port", str(port), "--data", data], stderr=subprocess.PIPE)
    assert process.stderr is not None
    for line in process.stderr:
        if b"broker.ready" in line:
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return process
    raise SystemExit("rumqd did not start")


def in_the_log(port: int, count: int) -> list[int]:
    """What `rumqd sub --from earliest` prints, as numbers."""
    command = [
        *RUMQD,
        "sub",
        "plug/numbers",
        "-p",
        str(port),
        "--from",
        "earliest",
        "-C",
        str(count),
        "-W",
        "10",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return [int(line) for line in done.stdout.split()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", metavar="DIR", help="[a new temporary directory]")
    parser.add_argument("--times", type=int, default=5, help="how often the plug is pulled [5]")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data, port = args.data or f"{folder}/data", free_port()
        publisher = Publisher()
        for turn in range(args.times):
            process = started(port, data)
            seconds = random.uniform(0.5, 2.0)
            publisher.run(port, seconds, process)
            say(
                f"{turn + 1}: kill -9 after {seconds:.2f} s under load; "
                f"{publisher.next:,} published, {len(publisher.acknowledged):,} acknowledged so far"
            )
        process = started(port, data)
        status = subprocess.run(
            [*RUMQD, "ask", "status", "--json", "--data", data], capture_output=True, text=True, check=True
        ).stdout
        count = int(status.partition('"next_lsn": ')[2].partition(",")[0])
        found = in_the_log(port, count)
        process.terminate()
        process.wait(30)
    missing = publisher.acknowledged - set(found)
    say(f"`rumqd sub --from earliest`: {len(found):,} messages in the log")
    print(f"   acknowledged and missing: {len(missing)}")
    print(f"   twice in the log:         {len(found) - len(set(found))}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
