"""Command line flags of settings; each sets a key of the table `rumq.settings.table`."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rumq.settings.load import Loaded

# Flag, what help calls its value, and the setting; the table has the sentence and the default.
SHORT_FLAGS = (
    ("--host", "HOST", "listener.host"),
    ("--port", "PORT", "listener.port"),
    ("--data", "DIR", "data.dir"),
    ("--shards", "N", "shards.count"),
)
FLIGHT_FLAGS = (("--host", "HOST", "flight.host"), ("--port", "PORT", "flight.port"), ("--data", "DIR", "data.dir"))
GRPC_FLAGS = (("--host", "HOST", "grpc.host"), ("--port", "PORT", "grpc.port"), ("--data", "DIR", "data.dir"))
KAFKA_FLAGS = (("--host", "HOST", "kafka.host"), ("--port", "PORT", "kafka.port"), ("--data", "DIR", "data.dir"))
GATEWAY_FLAGS = (("--host", "HOST", "gateway.host"), ("--port", "PORT", "gateway.port"), ("--data", "DIR", "data.dir"))


class Setting(argparse.Action):
    """Collect (key, text, flag) in command line order: the last one of a key wins. const: the key; None for --set"""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        key, text = self.const, str(values)
        if not key:
            key, equals, text = text.partition("=")
            if not equals:
                parser.error(f"--set {key}: expected key=value, such as --set log.durability=process")
        namespace.settings = [*namespace.settings, (key.strip(), text.strip(), option_string)]


def add_setting_flags(parser: argparse.ArgumentParser, flags: Sequence[tuple[str, str, str]] = SHORT_FLAGS) -> None:
    from rumq.settings.keys import KEYS  # only commands that have settings pay for it

    parser.set_defaults(settings=[])
    parser.add_argument("-c", "--config", metavar="FILE", type=Path, help="a config.toml [all defaults]")
    for flag, metavar, key in flags:
        known = KEYS[key]
        sentence = f"{known.line} [{known.usual if known.usual is not None else known.default}]".replace("%", "%%")
        parser.add_argument(
            flag,
            metavar=metavar,
            action=Setting,
            const=key,
            dest=argparse.SUPPRESS,
            help=f"{sentence}; setting: {key}",
        )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action=Setting,
        dest=argparse.SUPPRESS,
        help="any other setting; `rumqd show settings` lists them",
    )


def loaded_settings(args: argparse.Namespace) -> "Loaded":
    """The settings from --config, the environment and the flags; raises ConfigError."""
    from rumq.settings.load import Flag, load_settings

    flags = [Flag(*setting) for setting in args.settings]
    if getattr(args, "mosquitto_conf", None) is not None:
        from rumq.cli.mosquitto_migration import settings_of_conf

        return load_settings(None, os.environ, flags, tree=settings_of_conf(args))
    return load_settings(args.config, os.environ, flags)


def loaded_for_broker(args: argparse.Namespace) -> "Loaded":
    """Of a process that a broker may have started: the broker has reported what its mosquitto.conf leaves out."""
    if args.for_broker:
        args.told = args.temporary = True
    return loaded_settings(args)


def sources(args: argparse.Namespace) -> list[str]:
    """Flags that give another process the same settings; it inherits the environment."""
    found = [] if args.config is None else ["--config", str(args.config)]
    for key, text, _ in args.settings:
        found += ["--set", f"{key}={text}"]
    if getattr(args, "mosquitto_conf", None) is not None:
        found += ["--mosquitto-conf", str(args.mosquitto_conf)]
    return found
