"""`rumqd run --mosquitto-conf`: what is not carried over is told in events, and by --check line by line."""

import os
import signal
from pathlib import Path

import pytest

from tests.broker_process import Rumqd, run_command
from tests.cli.conftest import rumqd

CONF = """\
user {user}
log_dest file /var/log/mosquitto.log
max_queued_messages 100
listener 0 127.0.0.1
allow_anonymous true
max_qos 1
listener 1 127.0.0.1
bind_interface eth9
"""


def conf(folder: Path, text: str) -> str:
    path = folder / "mosquitto.conf"
    path.write_text(text)
    return str(path)


class FromConf(Rumqd):
    def command(self) -> list[str]:
        return run_command(*self.flags)


def test_what_is_missing_is_told_in_events(tmp_path: Path) -> None:
    path = conf(tmp_path, CONF.format(user="mosquitto"))
    broker = FromConf(tmp_path, "--mosquitto-conf", path)
    broker.start()
    try:
        left_out = {each["option"]: each for each in broker.named("mosquitto.left_out")}
        assert left_out["max_queued_messages"]["line"] == 3
        assert ("user" in left_out) == (os.geteuid() == 0)
        (closed,) = broker.named("mosquitto.listener_closed")
        assert (closed["line"], closed["option"], closed["listeners"]) == (
            8, "bind_interface", ["listener 1 127.0.0.1"],
        )  # fmt: skip
        assert len(broker.named("listener.bound")) == 1
        assert not broker.named(""), "a line that is no event"
    finally:
        broker.end()


def test_nothing_is_said_on_standard_output(tmp_path: Path) -> None:
    """Nor in another format than `events.format` asks for; the address is not of this machine, so it leaves."""
    path = conf(tmp_path, "plugin_opt_x 1\nmax_queued_messages 1\nlistener 1 192.0.2.1\n")
    done = rumqd("run", "--mosquitto-conf", path, "--set", "events.format=json", "--data", str(tmp_path / "data"))
    assert done.status == 1 and done.out == ""
    assert '"event":"mosquitto.left_out"' in done.err and "cannot listen" in done.err


def test_check_says_of_each_line_what_becomes_of_it(tmp_path: Path) -> None:
    path = conf(tmp_path, CONF.format(user="root"))
    done = rumqd("run", "--mosquitto-conf", path, "--check")
    assert done.status == 1
    *lines, closed, last = done.out.splitlines()
    found = [line.removeprefix(f"{path}, line ") for line in lines]
    assert [int(line.split(":")[0]) for line in found] == [1, 2, 3, 4, 5, 6, 8]
    assert found[0] == "1: user root: not needed: rumqd runs as the user that starts it"
    assert "not needed: events go to standard error" in found[1]
    assert "LEFT OUT: nothing is queued" in found[2]
    assert found[3] == "4: listener 0 127.0.0.1: carried over"
    assert found[5] == "6: max_qos 1: carried over"
    assert "8: bind_interface eth9: ITS LISTENER STAYS CLOSED: rumq binds to addresses" in found[6]
    assert closed == f"{path}: NOT OPENED: listener 1 127.0.0.1"
    assert last == "rumqd: the settings are good, but not all of them are mosquitto's"


def test_check_finds_nothing_where_all_is_carried_over(tmp_path: Path) -> None:
    path = conf(tmp_path, "user root\nlistener 1884 127.0.0.1\nallow_anonymous true\nlog_dest stderr\n")
    done = rumqd("run", "--mosquitto-conf", path, "--check")
    assert done.status == 0 and done.out.splitlines()[-1] == "rumqd: the settings are good"


def test_a_file_that_has_become_faulty_changes_nothing_at_sighup(tmp_path: Path) -> None:
    path = conf(tmp_path, "user root\nlistener 0 127.0.0.1\n")
    broker = FromConf(tmp_path, "--mosquitto-conf", path)
    broker.start()
    try:
        for number, (text, words) in enumerate(
            [("listener x\n", "expected a port"), ("plugin x\n", "no listener is left")], 1
        ):
            conf(tmp_path, text)
            broker.process.send_signal(signal.SIGHUP)
            assert words in broker.event("settings.refused", number=number)["why"]
        assert broker.stop() == 0
    finally:
        broker.end()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root stays what mosquitto would not")
@pytest.mark.parametrize("line", ["", "user nobody\n"])
def test_root_is_told_that_it_stays_root(tmp_path: Path, line: str) -> None:
    path = conf(tmp_path, f"{line}listener 0 127.0.0.1\n")
    done = rumqd("run", "--mosquitto-conf", path, "--check")
    assert done.status == 1
    name = line.split()[1] if line else "mosquitto"
    assert f"rumqd stays root, mosquitto would switch to {name}" in done.out


def test_where_no_listener_is_left_there_is_no_broker(tmp_path: Path) -> None:
    """Not even the one that a broker without any settings has."""
    path = conf(tmp_path, "plugin /usr/lib/mosquitto_dynamic_security.so\nlistener 1883\nallow_anonymous true\n")
    words = f"{path}, line 1: plugin /usr/lib/mosquitto_dynamic_security.so: rumq loads no plugins"
    for command in (
        ["run", "--mosquitto-conf", path, "--data", str(tmp_path / "data")],
        ["run", "--mosquitto-conf", path, "--check"],
        ["import-mosquitto", path],
        ["import-mosquitto", path, "--write", str(tmp_path)],
    ):
        done = rumqd(*command)
        assert done.status == 1 and done.out == ""
        assert words in done.err and "no listener is left that can be opened" in done.err
    assert not (tmp_path / "config.toml").exists() and not (tmp_path / "data").exists()
