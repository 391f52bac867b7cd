"""A consumer in a group, as a process that tests kill: prints each record that it has committed, a line each.

Arguments: address, group, client id, instance id or -"""

from __future__ import annotations

import sys

import confluent_kafka as kafka


def main(address: str, group: str, client_id: str, instance: str) -> None:
    settings = {
        "bootstrap.servers": address, "group.id": group, "client.id": client_id, "auto.offset.reset": "earliest",
        "enable.auto.commit": False, "session.timeout.ms": 1500, "heartbeat.interval.ms": 300,
        "reconnect.backoff.max.ms": 200, "retry.backoff.max.ms": 200, "topic.metadata.refresh.interval.ms": 1000,
    }  # fmt: skip
    if instance != "-":
        settings["group.instance.id"] = instance
    consumer = kafka.Consumer(settings)
    consumer.subscribe(["main"])
    while True:
        message = consumer.poll(0.2)
        if message is None or message.error() is not None:
            continue
        print(message.partition(), message.offset(), flush=True)
        try:
            consumer.commit(message, asynchronous=False)
        except kafka.KafkaException:
            continue  # it is read again, here or elsewhere


if __name__ == "__main__":
    main(*sys.argv[1:])
