"""The table of settings: every key with its type, unit, bounds, default, what it applies to, and its sentence.

config.toml, docs/reference/settings.md, flags, environment variables, error messages and what a reload puts into force
come from it: `rumq.settings.load` checks sources against it, `rumq.settings.show` writes it. Names end in their unit
and bound.
"""

from msgspec import Struct

from rumq.settings.table.auth import Auth
from rumq.settings.table.cluster import Cluster
from rumq.settings.table.gateway import Gateway
from rumq.settings.table.grpc import Grpc
from rumq.settings.table.listener import Listener
from rumq.settings.table.log import Data, Log, Shards, Stream
from rumq.settings.table.log_servers import Flight, Kafka, KafkaView
from rumq.settings.table.mqtt import Mqtt
from rumq.settings.table.queues import Queues
from rumq.settings.table.side_processes import Bridge, Function
from rumq.settings.table.status import Events, Sys
from rumq.settings.table.trace import Trace

__all__ = [
    "Auth", "Bridge", "Cluster", "Data", "Events", "Flight", "Function", "Gateway", "Grpc", "Kafka", "KafkaView",
    "Listener", "Log", "Mqtt", "Queues", "Settings", "Shards", "Stream", "Sys", "Trace",
]  # fmt: skip


class Settings(Struct, frozen=True, kw_only=True):
    """All settings. `Settings()` has the defaults, with which a bare `rumqd` runs."""

    listener: Listener = Listener()
    more_listeners: tuple[Listener, ...] = ()
    auth: Auth = Auth()
    data: Data = Data()
    shards: Shards = Shards()
    cluster: Cluster = Cluster()
    log: Log = Log()
    stream: tuple[Stream, ...] = (Stream(),)  # at least one, and one with the filter "#"
    function: tuple[Function, ...] = ()
    bridge: tuple[Bridge, ...] = ()
    mqtt: Mqtt = Mqtt()
    sys: Sys = Sys()
    flight: Flight = Flight()
    gateway: Gateway = Gateway()
    grpc: Grpc = Grpc()
    kafka: Kafka = Kafka()
    kafka_view: tuple[KafkaView, ...] = ()
    queues: Queues = Queues()
    trace: Trace = Trace()
    events: Events = Events()

    @property
    def listeners(self) -> tuple[Listener, ...]:
        return (self.listener, *self.more_listeners)
