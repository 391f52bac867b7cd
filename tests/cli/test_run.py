"""`rumqd run`, and what is common to all commands: help, exit status, settings."""

import os
import signal
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from rumq import version
from rumq.cli.main import main, normalize_arguments
from tests.cli.conftest import ENVIRONMENT, SECONDS_MAX, Broker, rumqd

ROOT = Path(__file__).parents[2]
COMMANDS = ("run", "pub", "sub", "log", "ask", "config")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ([], ["run"]),
        (["--port", "1884"], ["run", "--port", "1884"]),
        (["--help"], ["--help"]),
        (["--version"], ["--version"]),
        (["sub", "a", "--from", "-1h"], ["sub", "a", "--from=-1h"]),
        (["sub", "--from"], ["sub", "--from"]),
    ],
)
def test_what_is_typed_means(typed: list[str], meant: list[str]) -> None:
    assert normalize_arguments(typed) == meant


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([command, "--help"])
    text = capsys.readouterr().out
    assert left.value.code == 0 and "examples:" in text and f"rumqd {command}" in text


def test_the_help_names_every_command_and_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    assert all(f"\n    {command} " in text for command in COMMANDS) and "exit status:" in text


def test_the_examples_in_the_help_are_commands_that_parse(capsys: pytest.CaptureFixture[str]) -> None:
    """Run by hand they need a broker; here only their arguments are taken."""
    from rumq.cli.main import build_parser

    for command in ((), *((command,) for command in COMMANDS), ("log", "read")):
        with pytest.raises(SystemExit):
            main([*command, "--help"])
        for line in capsys.readouterr().out.splitlines():
            if line.startswith("  rumqd ") or "| rumqd " in line:
                build_parser().parse_args(normalize_arguments(words(line)))


def words(line: str) -> list[str]:
    """An example as the shell would cut it, up to its comment, pipe or redirection."""
    import re
    import shlex

    line = re.split(r"\s{3,}", line[line.index("rumqd") :])[0]
    return shlex.split(re.split(r" [|>&]", line)[0])[1:]


def test_help_imports_nothing_heavy() -> None:
    """So that it is there at once: trio alone costs a tenth of a second."""
    code = (
        "import sys; before = set(sys.modules); from rumq.cli.main import lazy_parser; "
        "lazy_parser().format_help(); print(*set(sys.modules) - before)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=ENVIRONMENT)
    heavy = {"trio", "structlog", "msgspec", "asyncio", "socket", "importlib.metadata", "commitlog"}
    assert not heavy & set(out.stdout.split())


def test_the_version_says_which_kernels_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert f"rumqd {version.VERSION}, kernels: {version.kernels()}, Python 3." in capsys.readouterr().out


def test_kernels_are_told_from_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("all_plain", "some"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
        (tmp_path / package / "cut.py").touch()
    suffix = __import__("importlib.machinery").machinery.EXTENSION_SUFFIXES[0]
    (tmp_path / "some" / f"fan{suffix}").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(version, "KERNEL_PACKAGES", ("all_plain",))
    assert version.kernels() == "python"
    monkeypatch.setattr(version, "KERNEL_PACKAGES", ("some",))
    assert version.kernels() == "compiled but for some.cut"


def test_refused_settings_are_all_told_and_end_with_status_2(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[log]\nsync = "sometimes"\n')
    ended = rumqd("run", "--config", str(config), "--port", "x", env={"RUMQ_MQTT_MAXIMUM_QOS": "3"})
    assert ended.status == 2 and ended.out == ""
    assert ended.err.splitlines() == [
        f"rumqd: {config}: log.sync: no such setting; config.toml lists them all",
        "rumqd: environment RUMQ_MQTT_MAXIMUM_QOS: mqtt.maximum_qos = 3: expected a whole number, 0 to 2",
        'rumqd: --port: listener.port = "x": expected a whole number, 0 to 65535',
    ]


def test_check_says_whether_settings_are_good_and_starts_nothing(tmp_path: Path) -> None:
    ended = rumqd("run", "--check", "--data", "data", cwd=tmp_path)
    assert (ended.status, ended.out, ended.err) == (0, "rumqd: the settings are good\n", "")
    assert not list(tmp_path.iterdir())
    assert rumqd("run", "--check", "--set", "log.linger_ms=x", cwd=tmp_path).status == 2


def test_set_needs_key_and_value(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["run", "--set", "log.durability"])
    assert left.value.code == 2 and "expected key=value" in capsys.readouterr().err


def test_config_shows_the_settings_in_force_and_their_sources() -> None:
    ended = rumqd("config", "--port", "1", "--set", "log.linger_ms=2", env={"RUMQ_LOG_DURABILITY": "process"})
    sections = ended.out[: ended.out.index("[[stream]]")]
    lines = {line.split(" ")[0]: line for line in reversed(sections.splitlines())}  # the first of a name
    assert lines["port"].split() == ["port", "=", "1", "#", "--port"]
    assert lines["linger_ms"].endswith("# --set")
    assert lines["durability"].endswith("# environment RUMQ_LOG_DURABILITY")
    assert tomllib.loads(ended.out)["listener"]["port"] == 1


def test_config_example_is_the_config_toml_of_the_repository() -> None:
    assert rumqd("config", "--example").out == (ROOT / "config.toml").read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_broker_with_status_0(number: signal.Signals, tmp_path: Path) -> None:
    broker = Broker(tmp_path / "data")
    broker.process.send_signal(number)
    assert broker.wait("broker.stopping")["signal"] == number.name
    assert broker.wait("broker.stopped")["exit_status"] == 0
    assert broker.process.wait(SECONDS_MAX) == 0


def test_a_data_directory_in_use_ends_with_status_3(broker: Broker) -> None:
    ended = rumqd("run", "--port", "0", "--data", str(broker.data))
    assert ended.status == 3
    assert f"rumqd: data directory {broker.data}: another broker" in ended.err


def test_a_data_directory_that_cannot_be_made_ends_with_status_3(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ended = rumqd("run", "--port", "0", "--data", str(tmp_path / "file" / "data"))
    assert ended.status == 3 and "rumqd: data directory " in ended.err and "Traceback" not in ended.err


def test_a_port_in_use_ends_with_status_1_and_a_way_out(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = rumqd("run", "--host", "127.0.0.1", "--port", port, "--data", str(tmp_path / "data"))
    assert ended.status == 1 and "give another --port" in ended.err and "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("typed", "way_out"),
    [
        ("xyzzy", "no such command: 'xyzzy'; `rumqd --help` has them"),
        ("publish", "did you mean `rumqd pub`?"),
        ("clients", "did you mean `rumqd ask clients`?"),
        ("log lss", "rumqd log: error: no such command: 'lss'; did you mean `rumqd log ls`?"),
    ],
)
def test_an_unknown_command_ends_with_status_2_and_a_way_out(
    typed: str, way_out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(typed.split())
    assert left.value.code == 2 and way_out in capsys.readouterr().err


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    """`rumqd config | head -1`."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        process = subprocess.run(
            [sys.executable, "-m", "rumq", "config"],
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
            env=ENVIRONMENT,
        )
    finally:
        os.close(writing)
    assert (process.returncode, process.stderr) == (0, b"")
