"""`rumqd run`: arguments, and the check of settings before a start."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rumq.cli.setting_flags import add_setting_flags, loaded_settings, sources

if TYPE_CHECKING:
    from rumq.settings.table import Settings

ABOUT = """\
Serve MQTT until SIGTERM or SIGINT, then disconnect all clients (0x8B), sync the log and exit.
Settings come from the defaults, --config, the environment (RUMQ_LOG_DURABILITY=process) and flags, in that order.
"""
EXAMPLES = """\
examples:
  rumqd run --page                               with the web page on localhost, and a token for it
  rumqd run --data /var/lib/rumq --host 0.0.0.0
  rumqd run --config config.toml --set log.durability=process
  rumqd run --set 'stream=[{name="plant", filters=["plant/#"], partitions=4}]'
  rumqd run --config config.toml --check         check the settings and exit

exit status: 0 stopped by a signal; 2 invalid settings; 3 data directory in use or unusable; 1 any other error
"""
OK = 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_setting_flags(parser)
    parser.add_argument("--mosquitto-conf", metavar="FILE", type=Path, help="use the settings of a mosquitto.conf")
    parser.add_argument(
        "--page", action="store_true",
        help="serve the web page too, on localhost:8080 or the next free port, and print a token for it (a week)",
    )  # fmt: skip
    parser.add_argument("--check", action="store_true", help="check the settings and exit")


def run(args: argparse.Namespace) -> int:
    if args.page:
        from rumq.cli.page_access import add_page

        add_page(args)
    settings = loaded_settings(args).settings
    if args.check:
        from rumq.process.listeners.listener_policies import ListenerPolicies
        from rumq.process.listeners.transports import transports_of
        from rumq.process.wiring.sidecars import check_sidecars

        ListenerPolicies(settings, says_exposed=False)
        transports_of(settings)
        check_sidecars(settings)
        status = OK
        if args.mosquitto_conf is not None:
            from rumq.cli.mosquitto_migration import print_verdicts

            status = print_verdicts(args)
        print("rumqd: the settings are good" + (", but not all of them are mosquitto's" if status else ""))
        return status
    if args.mosquitto_conf is not None:
        from rumq.cli.mosquitto_migration import report_left_out
        from rumq.events.output import setup_events

        setup_events(settings.events.format, settings.events.level)
        report_left_out(args)
    from rumq.process.broker.broker_process import run
    from rumq.process.listeners.gateway_listener import with_gateway

    begin = partial(show_page, settings) if args.page else lambda: None
    return run(with_gateway(settings), lambda: with_gateway(loaded_settings(args).settings), sources(args), begin)


def show_page(settings: Settings) -> None:
    """Print where the page is, and a token for it. raises: RumqError"""
    from rumq.cli.page_access import make_page_token
    from rumq.process.wiring.page_address import page_address

    print(f"page: {page_address(settings)}\ntoken: {make_page_token(settings)}", flush=True)
