"""Command line flags of settings; each sets a key of the table `rumq.config`."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rumq.settings.load import Loaded

SHORT_FLAGS = (
    ("--host", "HOST", "listener.host", "address to listen on [localhost]"),
    ("--port", "PORT", "listener.port", "TCP port, 0 for any free one [1883]"),
    ("--data", "DIR", "data.dir", "data directory: the log and the sessions [rumq-data]"),
    ("--shards", "N", "shards.count", "broker processes, best one per core [1]"),
)


FLIGHT_FLAGS = (
    ("--host", "HOST", "flight.host", "address to listen on [localhost]"),
    ("--port", "PORT", "flight.port", "TCP port, -1 for any free one [8815]"),
    ("--data", "DIR", "data.dir", "the log to serve, with its broker on or off [rumq-data]"),
)

GATEWAY_FLAGS = (
    ("--host", "HOST", "gateway.host", "address to listen on [localhost]"),
    ("--port", "PORT", "gateway.port", "TCP port, -1 for any free one [8080]"),
    ("--data", "DIR", "data.dir", "data directory of the broker [rumq-data]"),
)


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


def add_setting_flags(
    parser: argparse.ArgumentParser, flags: Sequence[tuple[str, str, str, str]] = SHORT_FLAGS
) -> None:
    parser.set_defaults(settings=[])
    parser.add_argument("-c", "--config", metavar="FILE", type=Path, help="a config.toml [all defaults]")
    for flag, metavar, key, line in flags:
        parser.add_argument(
            flag,
            metavar=metavar,
            action=Setting,
            const=key,
            dest=argparse.SUPPRESS,
            help=f"{line}; config: {key}",
        )
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action=Setting,
        dest=argparse.SUPPRESS,
        help="any other setting; `rumqd config` lists them",
    )


def loaded_settings(args: argparse.Namespace) -> "Loaded":
    """The settings from --config, the environment and the flags; raises ConfigError."""
    from rumq.settings.load import Flag, load_settings

    flags = [Flag(*setting) for setting in args.settings]
    if getattr(args, "mosquitto_conf", None) is not None:
        from rumq.cli.admin.mosquitto_migration import settings_of_conf

        return load_settings(None, os.environ, flags, tree=settings_of_conf(args))
    return load_settings(args.config, os.environ, flags)


def sources(args: argparse.Namespace) -> list[str]:
    """Flags that give another process the same settings; it inherits the environment."""
    found = [] if args.config is None else ["--config", str(args.config)]
    for key, text, _ in args.settings:
        found += ["--set", f"{key}={text}"]
    if getattr(args, "mosquitto_conf", None) is not None:
        found += ["--mosquitto-conf", str(args.mosquitto_conf)]
    return found
