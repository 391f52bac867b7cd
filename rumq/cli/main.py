"""`rumqd`: one parser for all commands, dispatch, exit status.

A command is a module with `add_arguments(parser)` and `run(args)`. It imports heavy modules when it runs, so that help
appears at once.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rumq.cli import access_denied
from rumq.cli.admin import acl, ask, certs, check, import_mosquitto, init, passwd
from rumq.cli.analytics import flight, lake, mirror, spark
from rumq.cli.client import (
    pub,
    sub,  # fmt: skip
)
from rumq.cli.cluster import command as cluster
from rumq.cli.data import backup, doctor, log
from rumq.cli.gateway import gateway, token
from rumq.cli.setting_flags import add_setting_flags, loaded_settings, sources
from rumq.errors import ConfigError, DataDirectoryError, RumqError

OK, FAILED, REFUSED, DATA_IN_USE = 0, 1, 2, 3

ABOUT = """\
rumq is an MQTT broker in which every topic is a log: it stores what was published, and a subscription may start
in the past. Without a command, rumqd serves MQTT on localhost:1883 and stores its log in ./rumq-data.
"""

EXAMPLES = """\
try it, in three terminals:
  rumqd                                          serve MQTT 3.1.1 and 5 on localhost:1883
  rumqd sub -v 'plant/#'                         print messages
  rumqd pub plant/7/temp -m 21.5 -q 1            publish; returns once it is on the broker's disk

then:
  rumqd sub -v 'plant/#' --from earliest         replay from the first record, then live
  rumqd sub -v 'plant/#' --from -1h              replay the last hour, then live
  rumqd log ls                                   streams and segments; the broker may run or not
  rumqd config --example > config.toml           every setting with default and unit
  rumqd run --config config.toml --port 1884     serve with them; flags override the file

exit status: 0 done, or stopped by a signal; 2 invalid arguments or settings; 3 the data directory is in use or
unusable; 1 any other error
`rumqd COMMAND --help` has details.
"""

RUN_ABOUT = """\
Serve MQTT until SIGTERM or SIGINT, then disconnect all clients (0x8B), sync the log and exit.
Settings come from the defaults, --config, the environment (RUMQ_LOG_DURABILITY=process) and flags, in that order.
"""

RUN_EXAMPLES = """\
examples:
  rumqd run --data /var/lib/rumq --host 0.0.0.0
  rumqd run --config config.toml --set log.durability=process
  rumqd run --set 'stream=[{name="plant", filters=["plant/#"], partitions=4}]'
  rumqd run --config config.toml --check         check the settings and exit

exit status: 0 stopped by a signal; 2 invalid settings; 3 data directory in use or unusable; 1 any other error
"""

CONFIG_ABOUT = """\
Print the effective settings as TOML, each with its source: default, the file, the environment, a flag, or [log]
for inherited keys of a stream.
"""

CONFIG_EXAMPLES = """\
examples:
  rumqd config                                   the defaults and the environment
  rumqd config --config config.toml --set log.linger_ms=1
  rumqd config --example > config.toml           every setting, with comments
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    args = build_parser().parse_args(normalize_arguments(sys.argv[1:] if argv is None else argv))
    try:
        return int(args.run(args))
    except BaseException as error:
        if (status := maybe_exit_status(only_one(error))) is None:
            raise
        return status


def maybe_exit_status(error: BaseException) -> int | None:
    """Print an error that has a message for the operator, and return its exit status; None for a bug."""
    match error:
        case BrokenPipeError():
            # `rumqd log read | head`: without this Python would report the closed pipe again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return OK
        case KeyboardInterrupt():
            return FAILED
        case RumqError():
            for line in str(error).splitlines():
                print(f"rumqd: {line}", file=sys.stderr)
            return {ConfigError: REFUSED, DataDirectoryError: DATA_IN_USE}.get(type(error), FAILED)
        case PermissionError():
            print(f"rumqd: {access_denied.sentence(error)}", file=sys.stderr)
            return FAILED
    return None


def only_one(error: BaseException) -> BaseException:
    """The exception in a group of one, which is how errors leave a nursery."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def normalize_arguments(argv: Sequence[str]) -> list[str]:
    """Insert the default command `run`, and join `--from -1h`, whose value argparse would take for a flag."""
    arguments = list(argv)
    if not arguments or (arguments[0].startswith("-") and arguments[0] not in ("-h", "--help", "--version")):
        arguments.insert(0, "run")
    joined: list[str] = []
    for argument in arguments:
        if joined and joined[-1] in ("--from", "--until"):
            joined[-1] = f"{joined[-1]}={argument}"
        else:
            joined.append(argument)
    return joined


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rumqd", description=ABOUT, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--version",
        action="store_const",
        const=print_version,
        dest="run",
        help="print the version and whether kernels are compiled",
    )
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")

    def command(
        name: str, line: str, about: str, examples: str, *, help_flag: bool = True
    ) -> argparse.ArgumentParser:
        made = commands.add_parser(
            name,
            help=line,
            description=about,
            epilog=examples,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            add_help=help_flag,
            allow_abbrev=False,
        )
        if not help_flag:  # -h is the host, as for mosquitto_pub
            made.add_argument("--help", action="help", help="show this help and exit")
        return made

    run = command("run", "serve MQTT (also without any command)", RUN_ABOUT, RUN_EXAMPLES)
    add_setting_flags(run)
    run.add_argument(
        "--mosquitto-conf", metavar="FILE", type=Path, help="use the settings of a mosquitto.conf"
    )
    run.add_argument("--check", action="store_true", help="check the settings and exit")
    run.set_defaults(run=run_broker)

    for module in (pub, sub):
        made = command(module.NAME, module.LINE, module.ABOUT, module.EXAMPLES, help_flag=False)
        module.add_arguments(made)
        made.set_defaults(run=module.run)

    made = command(log.NAME, log.LINE, log.ABOUT, log.EXAMPLES)
    log.add_arguments(made)

    made = command(lake.NAME, lake.LINE, lake.ABOUT, lake.EXAMPLES)
    lake.add_arguments(made)

    made = command(flight.NAME, flight.LINE, flight.ABOUT, flight.EXAMPLES)
    flight.add_arguments(made)
    made.set_defaults(run=flight.run)

    made = command(mirror.NAME, mirror.LINE, mirror.ABOUT, mirror.EXAMPLES)
    mirror.add_arguments(made)
    made.set_defaults(run=mirror.run)

    made = command(gateway.NAME, gateway.LINE, gateway.ABOUT, gateway.EXAMPLES)
    gateway.add_arguments(made)
    made.set_defaults(run=gateway.run)

    made = command(token.NAME, token.LINE, token.ABOUT, token.EXAMPLES)
    token.add_arguments(made)
    made.set_defaults(run=token.run)

    made = command(ask.NAME, ask.LINE, ask.ABOUT, ask.EXAMPLES)
    ask.add_arguments(made)
    made.set_defaults(run=ask.run)

    made = command(cluster.NAME, cluster.LINE, cluster.ABOUT, cluster.EXAMPLES)
    cluster.add_arguments(made)

    saved = command("backup", backup.BACKUP_LINE, backup.BACKUP_ABOUT, backup.BACKUP_EXAMPLES)
    backup.add_backup_arguments(saved)
    saved.set_defaults(run=backup.run_backup)

    restored = command("restore", backup.RESTORE_LINE, backup.RESTORE_ABOUT, backup.RESTORE_EXAMPLES)
    backup.add_restore_arguments(restored)
    restored.set_defaults(run=backup.run_restore)

    users = command(passwd.NAME, passwd.LINE, passwd.ABOUT, passwd.EXAMPLES)
    passwd.add_arguments(users)
    users.set_defaults(run=passwd.run)

    imported = command(
        import_mosquitto.NAME, import_mosquitto.LINE, import_mosquitto.ABOUT, import_mosquitto.EXAMPLES
    )
    import_mosquitto.add_arguments(imported)
    imported.set_defaults(run=import_mosquitto.run)

    rules = command(acl.NAME, acl.LINE, acl.ABOUT, acl.EXAMPLES)
    acl.add_arguments(rules)
    add_setting_flags(rules)
    rules.set_defaults(run=acl.run)

    examined = command("doctor", doctor.LINE, doctor.ABOUT, doctor.EXAMPLES)
    doctor.add_arguments(examined)
    examined.set_defaults(run=doctor.run)

    made = command(certs.NAME, certs.LINE, certs.ABOUT, certs.EXAMPLES)
    certs.add_arguments(made)
    made.set_defaults(run=certs.run)

    checked = command(check.NAME, check.LINE, check.ABOUT, check.EXAMPLES)
    check.add_arguments(checked)
    checked.set_defaults(run=check.run)

    begun = command(init.NAME, init.LINE, init.ABOUT, init.EXAMPLES)
    init.add_arguments(begun)
    begun.set_defaults(run=init.run)

    made = command(spark.NAME, spark.LINE, spark.ABOUT, spark.EXAMPLES)
    spark.add_arguments(made)

    config = command(
        "config", "print the effective settings and their sources", CONFIG_ABOUT, CONFIG_EXAMPLES
    )
    add_setting_flags(config)
    config.add_argument("--example", action="store_true", help="print a commented config.toml instead")
    config.set_defaults(run=print_config)
    return parser


def run_broker(args: argparse.Namespace) -> int:
    settings = loaded_settings(args).settings
    if args.check:
        from rumq.cli.wiring.listener_policies import ListenerPolicies
        from rumq.cli.wiring.sidecars import check_sidecars
        from rumq.cli.wiring.transports import transports_of

        ListenerPolicies(settings, says_exposed=False)
        transports_of(settings)
        check_sidecars(settings)
        status = OK
        if args.mosquitto_conf is not None:
            from rumq.cli.admin.mosquitto_migration import print_verdicts

            status = print_verdicts(args)
        print("rumqd: the settings are good" + (", but not all of them are mosquitto's" if status else ""))
        return status
    if args.mosquitto_conf is not None:
        from rumq.cli.admin.mosquitto_migration import report_left_out
        from rumq.events import setup_events

        setup_events(settings.events.format, settings.events.level)
        report_left_out(args)
    from rumq.cli.broker.run import run
    from rumq.cli.wiring.gateway_listener import with_gateway

    return run(with_gateway(settings), lambda: with_gateway(loaded_settings(args).settings), sources(args))


def print_config(args: argparse.Namespace) -> int:
    from rumq.settings.show import example, in_force

    print(example() if args.example else in_force(loaded_settings(args)), end="")
    return OK


def print_version(_: argparse.Namespace) -> int:
    from rumq.version import version_line

    print(version_line())
    return OK
