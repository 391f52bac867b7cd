"""Settings that are each allowed and impossible together. Each names the way out.

Knows `Settings` only. Refuses to know the sources beyond their names.
"""

import re
from collections.abc import Iterator, Mapping

from rumq.errors import Fault
from rumq.mqtt.errors import TopicFilterInvalid, TopicNameInvalid
from rumq.mqtt.topics import SHARE_PREFIX, check_topic_filter, check_topic_name
from rumq.settings.keys import VIEW, as_toml
from rumq.settings.loopback import is_loopback
from rumq.settings.table import Settings, Stream
from rumq.unix_address import ADDRESS_BYTES_MAX, fits

ENDPOINT = re.compile(r"https?://[^/\s]+(?:/\S*)?")
HOST_AND_PORT = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s:\[\]]+):[0-9]{1,5}")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def broken_rules(settings: Settings, origins: Mapping[str, str]) -> list[Fault]:
    """Every rule that does not hold, as a fault of the key that is easiest to change."""
    return [
        *broken_listeners(settings, origins), *broken_log(settings, origins), *broken_streams(settings.stream, origins),
        *unreplicated_streams(settings, origins, is_clustered=bool(settings.cluster.name)),
        *broken_cluster(settings, origins), *broken_trace(settings, origins), *broken_kafka(settings, origins),
    ]  # fmt: skip


def broken_listeners(settings: Settings, origins: Mapping[str, str]) -> Iterator[Fault]:
    for number, listener in enumerate(settings.listeners):
        prefix = "listener" if number == 0 else f"listener[{number}]"
        if not fits(listener.path):
            key = f"{prefix}.path"
            yield Fault(
                origins.get(key, ""), key, as_toml(listener.path),
                f"expected at most {ADDRESS_BYTES_MAX} bytes: clients could not connect to a longer path",
            )  # fmt: skip
        key = f"{prefix}.mount_point"
        if point := listener.mount_point:
            try:
                check_topic_name(point, bytes_max=1000)
            except TopicNameInvalid as fault:
                yield Fault(
                    origins.get(key, ""),
                    key,
                    as_toml(point),
                    f"expected the beginning of topics: {fault.message}",
                )


def broken_log(settings: Settings, origins: Mapping[str, str]) -> Iterator[Fault]:
    percent, wanted = settings.log.free_percent_min, settings.log.wanted_free_percent_min
    if wanted > percent:
        yield Fault(
            origins["log.wanted_free_percent_min"],
            "log.wanted_free_percent_min",
            as_toml(wanted),
            f"expected at most log.free_percent_min, {as_toml(percent)}: what is not wanted goes first",
        )
    packet, pending = settings.mqtt.packet_bytes_max, settings.log.pending_bytes_max
    if pending < packet:
        yield Fault(
            origins["log.pending_bytes_max"],
            "log.pending_bytes_max",
            as_toml(pending),
            f"expected at least mqtt.packet_bytes_max, {as_toml(packet)}, or no such packet could be written",
        )


def broken_cluster(settings: Settings, origins: Mapping[str, str]) -> Iterator[Fault]:
    cluster = settings.cluster
    if not cluster.name:
        for key in ("node", "etcd"):
            if value := getattr(cluster, key):
                yield Fault(
                    origins[f"cluster.{key}"],
                    f"cluster.{key}",
                    as_toml(value),
                    "expected cluster.name as well",
                )
        return
    for key in ("name", "node"):
        value = getattr(cluster, key)
        if not NAME.fullmatch(value):
            expected = "expected a name of letters, digits, ., _ and -, at most 64"
            yield Fault(origins[f"cluster.{key}"], f"cluster.{key}", as_toml(value), expected)
    if not cluster.etcd and cluster.replicas > 1:
        yield Fault(
            origins["cluster.etcd"],
            "cluster.etcd",
            "",
            "expected the addresses of etcd, or cluster.replicas = 1",
        )
    if bool(cluster.tls_certificate) != bool(cluster.tls_authority):
        key = "cluster.tls_authority" if cluster.tls_certificate else "cluster.tls_certificate"
        expected = "expected a file: nodes check each other's certificates, so both it and the other one are needed"
        yield Fault(origins[key], key, '""', expected)
    if not cluster.tls_certificate and not cluster.insecure and not is_loopback(cluster.host):
        yield Fault(
            origins["cluster.host"], "cluster.host", as_toml(cluster.host),
            "expected an address of this machine alone, such as localhost, or TLS between nodes: without it whoever "
            "reaches the port reads and writes every message; rumqd certs node makes the files for "
            "cluster.tls_certificate, tls_key and tls_authority; cluster.insecure = true allows it on a network of the "
            "nodes alone",
        )  # fmt: skip
    if cluster.replicas == 2:
        yield Fault(
            origins["cluster.replicas"], "cluster.replicas", "2",
            "expected 1, or 3 and more: of two copies both must live, which is less than one alone",
        )  # fmt: skip
    if settings.shards.count != cluster.shards:
        yield Fault(
            origins["shards.count"], "shards.count", str(settings.shards.count),
            f"expected nothing: a cluster has cluster.shards, {cluster.shards}",
        )  # fmt: skip


def broken_trace(settings: Settings, origins: Mapping[str, str]) -> Iterator[Fault]:
    trace, endpoint = settings.trace, settings.trace.otlp_endpoint
    if endpoint and not ENDPOINT.fullmatch(endpoint):
        expected = "expected http:// or https://, a host and a port, such as http://localhost:4318"
        yield Fault(origins["trace.otlp_endpoint"], "trace.otlp_endpoint", as_toml(endpoint), expected)
    if not trace.sample_every:
        return
    value = as_toml(trace.sample_every)
    if not endpoint:
        yield Fault(
            origins["trace.sample_every"], "trace.sample_every", value,
            "expected trace.otlp_endpoint as well: spans would go nowhere",
        )  # fmt: skip
    if not settings.gateway.port:
        yield Fault(
            origins["trace.sample_every"], "trace.sample_every", value,
            "expected gateway.port as well: the gateway exports the spans",
        )  # fmt: skip


def broken_kafka(settings: Settings, origins: Mapping[str, str]) -> Iterator[Fault]:
    advertised = settings.kafka.advertised
    if advertised and not HOST_AND_PORT.fullmatch(advertised):
        expected = "expected host:port, such as broker.example.org:9092, or nothing"
        yield Fault(origins["kafka.advertised"], "kafka.advertised", as_toml(advertised), expected)
    streams = [stream.name for stream in settings.stream]
    names = set(streams)
    for view in settings.kafka_view:
        prefix = f"{VIEW}.{view.name}"
        source = origins[f"{prefix}.name"]
        if view.name in names:
            expected = "a stream or another view has this name; give it another one"
            yield Fault(source, f"{prefix}.name", as_toml(view.name), expected)
        names.add(view.name)
        if view.stream not in streams:
            there = ", ".join(streams)
            yield Fault(source, f"{prefix}.stream", as_toml(view.stream), f"expected a stream: {there}")
        if problem := filter_problem(view.filter):
            yield Fault(source, f"{prefix}.filter", as_toml(view.filter), problem.replace("stream", "view"))


def broken_streams(streams: tuple[Stream, ...], origins: Mapping[str, str]) -> Iterator[Fault]:
    names: set[str] = set()
    taken: dict[str, str] = {}
    for stream in streams:
        prefix = f"stream.{stream.name}"
        source = origins[f"{prefix}.name"]
        if stream.name in names:
            added = source == "default"
            way_out = 'give it the filter "#", or another name' if added else "give one of them another name"
            yield Fault(source, f"{prefix}.name", as_toml(stream.name), f"two streams have this name; {way_out}")
        names.add(stream.name)
        for topic_filter in stream.filters:
            key = f"{prefix}.filters"
            if problem := filter_problem(topic_filter):
                yield Fault(source, key, as_toml(topic_filter), problem)
            elif topic_filter in taken or ("#" in taken and not topic_filter.startswith("$")):
                # First match wins, so nothing would ever be kept as this stream asks.
                first = taken.get(topic_filter) or taken["#"]
                yield Fault(
                    source,
                    key,
                    as_toml(topic_filter),
                    f"never reached: {first} comes first and takes all; move it up",
                )
        taken |= dict.fromkeys(stream.filters, prefix)
        bounds = {
            "retention_bytes_max": stream.retention_bytes_max,
            "retention_seconds_max": stream.retention_seconds_max,
        }
        bounded = next((key for key, value in bounds.items() if value), "")
        if stream.retention == "forever" and bounded:
            yield Fault(
                origins[f"{prefix}.{bounded}"],
                f"{prefix}.{bounded}",
                as_toml(bounds[bounded]),
                'expected 0 with retention = "forever": what is kept for ever has no bound; leave out one of them',
            )
        if 0 < stream.retention_bytes_max < stream.segment_bytes_max:
            yield Fault(
                origins[f"{prefix}.retention_bytes_max"],
                f"{prefix}.retention_bytes_max",
                as_toml(stream.retention_bytes_max),
                "expected 0, or at least segment_bytes_max, "
                f"{as_toml(stream.segment_bytes_max)}: whole segments are deleted",
            )


def unreplicated_streams(settings: Settings, origins: Mapping[str, str], *, is_clustered: bool) -> Iterator[Fault]:
    """Streams whose acknowledgements would wait for copies that nobody makes."""
    if is_clustered:
        return
    for stream in settings.stream:
        if stream.durability == "quorum":
            key = f"stream.{stream.name}.durability"
            yield Fault(
                origins[key],
                key,
                as_toml(stream.durability),
                'expected "process" or "disk": only a cluster has copies on other machines; add [cluster]',
            )


def filter_problem(topic_filter: str) -> str:
    """Why this is no filter for a stream, or an empty text."""
    try:
        check_topic_filter(topic_filter)
    except TopicFilterInvalid as fault:
        return fault.message
    return "a stream has no shared subscriptions" if topic_filter.startswith(SHARE_PREFIX) else ""
