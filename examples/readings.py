"""Publish real readings over MQTT: this machine's own, and a public temperature series as if devices sent it.

python examples/readings.py --port 1883 --seconds 10
"""

import argparse
import json
import socket
import time
from collections.abc import Iterator

import paho.mqtt.client as mqtt
import psutil
from vega_datasets import local_data

WINDOW = 500  # messages on their way at QoS 1


def connect(host: str, port: int, client_id: str) -> mqtt.Client:
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=client_id, protocol=mqtt.MQTTv5)
    client.max_inflight_messages_set(WINDOW)
    client.connect(host, port)
    client.loop_start()
    while not client.is_connected():
        time.sleep(0.01)
    return client


def temperatures() -> Iterator[tuple[str, str, float]]:
    """(device, ISO time, degrees Celsius) of two cities, hour by hour through 2010; NOAA, by way of vega_datasets."""
    cities = {"san-francisco": local_data.sf_temps(), "seattle": local_data.seattle_temps()}
    for city, frame in cities.items():
        for date, fahrenheit in zip(frame["date"], frame["temp"], strict=True):
            yield city, date.isoformat(), round((float(fahrenheit) - 32) / 1.8, 2)


def replay(host: str, port: int) -> int:
    """Send the series at QoS 1, each city a device of its own; returns how many were acknowledged."""
    clients: dict[str, mqtt.Client] = {}
    waiting = []
    for city, when, celsius in temperatures():
        if city not in clients:
            clients[city] = connect(host, port, f"station-{city}")
        payload = json.dumps({"time": when, "celsius": celsius})
        waiting.append(clients[city].publish(f"weather/{city}/temperature", payload, qos=1))
    for message in waiting:
        message.wait_for_publish(30)
    for client in clients.values():
        client.disconnect()
        client.loop_stop()
    return len(waiting)


def own_readings() -> dict[str, float]:
    """What this machine says of itself now."""
    disk, net = psutil.disk_io_counters(), psutil.net_io_counters()
    found = {
        "cpu_percent": psutil.cpu_percent(),
        "memory_percent": psutil.virtual_memory().percent,
        "load_1m": psutil.getloadavg()[0],
        "net_bytes_sent": float(net.bytes_sent),
    }
    if disk is not None:
        found["disk_bytes_written"] = float(disk.write_bytes)
    return found


def publish_own(host: str, port: int, seconds: float) -> int:
    """Send this machine's readings ten times a second; returns how many."""
    client = connect(host, port, f"machine-{socket.gethostname()}")
    end, sent = time.monotonic() + seconds, 0
    try:
        while time.monotonic() < end:
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            for name, value in own_readings().items():
                client.publish(
                    f"machine/{socket.gethostname()}/{name}", json.dumps({"time": now, "value": value}), qos=0
                )
                sent += 1
            time.sleep(0.1)
    finally:
        client.disconnect()
        client.loop_stop()
    return sent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--host", default="localhost")
    parser.add_argument("--port", type=int, default=1883)
    parser.add_argument("--seconds", type=float, default=10, help="how long to send this machine's own readings [10]")
    args = parser.parse_args()
    print(f"weather: {replay(args.host, args.port)} readings acknowledged")
    print(f"machine: {publish_own(args.host, args.port, args.seconds)} readings sent")


if __name__ == "__main__":
    main()
