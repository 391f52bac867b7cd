"""The commands of `rumqd`, and the module of each: it has ABOUT, EXAMPLES, `add_arguments(parser)` and `run(args)`.

A module that has sub-commands sets `run` for each of them instead."""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    """h_is_help: not of pub, sub, rr and bench, whose -h is the host, as of mosquitto_pub"""

    name: str
    module: str
    line: str
    h_is_help: bool = True


COMMANDS = (
    Command("run", "serve", "serve MQTT (also without any command)"),
    Command("pub", "client.pub", "publish messages", h_is_help=False),
    Command("sub", "client.sub", "subscribe and print messages", h_is_help=False),
    Command("rr", "client.rr", "publish a request and print its response", h_is_help=False),
    Command("bench", "client.bench", "measure a broker: messages a second and latency", h_is_help=False),
    Command("ask", "ask.command", "ask a running broker, or have it do something: status, clients, drain, ..."),
    Command("top", "top.command", "a live view of a running broker"),
    Command("context", "ask.context_command", "brokers by name: addresses and tokens of remote ones"),
    Command("log", "data.log", "inspect a data directory: ls, read, export, verify"),
    Command("doctor", "data.doctor", "diagnose a data directory, with remedies"),
    Command("backup", "data.backup", "copy a data directory, with its broker on or off"),
    Command("restore", "data.restore", "make a data directory from a backup"),
    Command("lake", "analytics.lake", "export finished segments as Parquet: export, verify, table"),
    Command("flight", "analytics.flight", "serve the log to Spark and other Arrow clients"),
    Command("spark", "analytics.spark", "Spark: run a job, doctor, offsets of a checkpoint"),
    Command("mirror", "analytics.mirror", "publish what one broker stores to another one"),
    Command("functions", "analytics.functions", "Python functions on batches of records: check, status, run"),
    Command("bridge", "analytics.bridge", "bridges to other brokers: status, run"),
    Command("cluster", "cluster.command", "a cluster: status, add, remove, drain, move, rebalance, force-leader"),
    Command("grpc", "gateway.grpc", "serve topics to programs over gRPC"),
    Command("kafka", "gateway.kafka", "serve the log to Kafka's consumers"),
    Command("gateway", "gateway.gateway", "serve REST, metrics and health of a running broker over HTTP"),
    Command("token", "gateway.token", "add, remove or list tokens of the gateway"),
    Command("completion", "completion", "completion of the command line: bash, zsh, fish"),
    Command("version", "print_version", "print the version and whether kernels are compiled"),
    Command("config", "settings.show_config", "print the effective settings and their sources"),
    Command("show", "settings.show", "show settings: value, source, unit, bounds, meaning, and when a change applies"),
    Command("check", "admin.check", "check settings, files, ports and the data directory of a broker"),
    Command("init", "admin.init", "make the first settings: TLS, users with random passwords, rules"),
    Command("passwd", "admin.passwd", "add, change or delete users of a password file"),
    Command("acl", "admin.acl", "explain a client's permissions"),
    Command("certs", "admin.certs", "make certificates for development, and for the nodes of a cluster"),
    Command("import-mosquitto", "admin.import_mosquitto", "print a mosquitto.conf as config.toml"),
)
