"""kill -9 of each node of a cluster in turn, while a device publishes at QoS 1 and somebody subscribes elsewhere.

python examples/cluster_plug.py [--times N]

Device and subscriber are paho-mqtt; each goes to the next node when its own is gone. Afterwards
`rumqd sub --from earliest` through every node shows each acknowledged number, at the same lsn."""

import argparse
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
try:
    import paho.mqtt.client as mqtt
except ImportError:
    sys.exit("cluster_plug.py needs paho-mqtt, as the examples do: python -m pip install 'rumq[examples]' (or ./run)")
from cluster import RUMQD, Cluster, Member, run
from main import say

TOPIC = "plug/numbers"
INTERVAL_S = 0.005
LIFE_S = 4.0  # between two kills


class Roamer:
    """A paho client with a lasting session, which connects to the next node when its connection ends."""

    def __init__(self, name: str, addresses: list[str], first: int) -> None:
        self._addresses, self.at = addresses, first
        self.client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, name, clean_session=False)
        self.client.max_inflight_messages_set(100)
        self.client.on_publish = self.published
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ending.is_set():
            host, port = self._addresses[self.at].split(":")
            try:
                self.client.connect(host, int(port), keepalive=5)
                while not self._ending.is_set() and self.client.loop(INTERVAL_S) == mqtt.MQTT_ERR_SUCCESS:
                    self.work()
            except OSError:
                time.sleep(0.02)
            self.at = (self.at + 1) % len(self._addresses)

    def published(self, _client: Any, _data: Any, mid: int, *_: Any) -> None:
        """An acknowledgement has come."""

    def work(self) -> None:
        """Between two turns of the loop, in its thread."""

    def end(self) -> None:
        self._ending.set()
        self._thread.join(5)
        self.client.disconnect()


class Device(Roamer):
    """Publishes 0, 1, 2 ...; acknowledged: number -> time of its PUBACK (monotonic)

    talks: while it is set, it publishes, and has 100 in flight at most"""

    def __init__(self, addresses: list[str], first: int) -> None:
        self.acknowledged: dict[int, float] = {}
        self._numbers: dict[int, int] = {}
        self.next, self._due = 0, 0.0
        self.talks = threading.Event()
        super().__init__("device", addresses, first)

    def work(self) -> None:
        if not self.talks.is_set() or time.monotonic() < self._due or self.next - len(self.acknowledged) >= 100:
            return
        self._due = time.monotonic() + INTERVAL_S
        info = self.client.publish(TOPIC, str(self.next), qos=1)
        self._numbers[info.mid] = self.next
        self.next += 1

    def published(self, _client: Any, _data: Any, mid: int, *_: Any) -> None:
        number = self._numbers.pop(mid, None)
        if number is not None:
            self.acknowledged[number] = time.monotonic()


def longest_wait(device: Device, since: float) -> float:
    """Seconds between two acknowledgements, or since the last one if some have not come yet."""
    times = sorted(each for each in device.acknowledged.values() if each >= since - 0.5)
    if len(device.acknowledged) < device.next:
        times = [*(times or [since]), time.monotonic()]
    return max((later - sooner for sooner, later in itertools.pairwise(times)), default=0.0)


def in_the_log(node: Member) -> list[tuple[int, int]]:
    """(lsn, number) of each message that `rumqd sub --from earliest` prints through a node within some seconds."""
    command = [
        *RUMQD,
        "sub",
        TOPIC,
        "-p",
        node.address.split(":")[1],
        "--from",
        "earliest",
        "-F",
        "%n %p",
        "-W",
        "4",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return [(int(lsn), int(number)) for lsn, number in (line.split() for line in done.stdout.splitlines())]


def story(cluster: Cluster, times: int) -> int:
    addresses = [each.address for each in cluster.nodes]
    got: list[int] = []
    subscriber = Roamer("subscriber", addresses, 1 % len(addresses))
    subscriber.client.on_connect = lambda client, *_: client.subscribe(TOPIC, qos=1)
    subscriber.client.on_message = lambda _c, _u, message: got.append(int(message.payload))
    device = Device(addresses, 0)
    time.sleep(1.0)
    device.talks.set()
    for turn in range(times * len(cluster.nodes)):
        node = cluster.nodes[turn % len(cluster.nodes)]
        time.sleep(LIFE_S / 2)
        killed = time.monotonic()
        os.kill(node.pid, signal.SIGKILL)
        time.sleep(LIFE_S)
        say(
            f"kill -9 of {node.name}: {len(device.acknowledged):,} of {device.next:,} acknowledged so far; "
            f"longest wait for an acknowledgement {1000 * longest_wait(device, killed):.0f} ms"
        )
    device.talks.clear()
    until = time.monotonic() + 20
    while time.monotonic() < until and (len(device.acknowledged) < device.next or len(set(got)) < device.next):
        time.sleep(0.05)
    device.end()
    subscriber.end()
    acknowledged = set(device.acknowledged)
    say(f"the subscriber got {len(set(got)):,} numbers, and misses {len(acknowledged - set(got))}")
    copies = {each.name: in_the_log(each) for each in cluster.nodes}
    for name, found in copies.items():
        missing = acknowledged - {number for _, number in found}
        print(
            f"   rumqd sub --from earliest through {name}: {len(found):,} messages, "
            f"{len(missing)} acknowledged ones missing"
        )
    same = len({tuple(found) for found in copies.values()}) == 1
    print(f"   each at the same lsn on every node: {'yes' if same else 'NO'}")
    whole = all(acknowledged <= {number for _, number in found} for found in copies.values())
    return 0 if same and whole and acknowledged <= set(got) else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=1, help="how often each node is killed [1]")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rumq-cluster-") as folder:
        cluster = Cluster(Path(folder))
        ready, stopping = threading.Event(), threading.Event()
        # The thread that starts the processes keeps them alive: it ends last.
        keeper = threading.Thread(target=run, args=(cluster, stopping, lambda entry: ready.set()))
        keeper.start()
        try:
            while not ready.wait(0.1):
                if not keeper.is_alive():
                    return 1
            return story(cluster, args.times)
        finally:
            stopping.set()
            keeper.join()


if __name__ == "__main__":
    sys.exit(main())
