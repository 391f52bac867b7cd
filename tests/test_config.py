"""Settings: one table serves the file, the environment, the command line and the messages."""

import pickle
import tomllib
from pathlib import Path

import pytest

from rumq.errors import ConfigError
from rumq.settings.keys import KEYS, VARIABLES, as_toml
from rumq.settings.load import Flag, load_settings
from rumq.settings.reference_page import page
from rumq.settings.rules import unreplicated_streams
from rumq.settings.show import example, in_force
from rumq.settings.table import Log, Settings, Stream

ROOT = Path(__file__).parents[1]


def refusals(path: Path | None = None, environ: dict[str, str] | None = None, *flags: Flag) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_settings(path, environ, flags)
    return [str(fault) for fault in caught.value.faults]


def toml(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(text)
    return path


def set_(key: str, text: str) -> Flag:
    return Flag(key, text, "--set")


def test_config_toml_agrees_with_the_table() -> None:
    """After a change of the table: rumqd config --example > config.toml"""
    assert (ROOT / "config.toml").read_text() == example()


def test_the_page_of_settings_agrees_with_the_table() -> None:
    """After a change of the table: rumqd show settings --page > docs/reference/settings.md"""
    assert (ROOT / "docs/reference/settings.md").read_text() == page()


def test_config_toml_lists_every_key_at_its_default() -> None:
    loaded = load_settings(ROOT / "config.toml")
    assert loaded.settings == Settings()
    assert {key for key, origin in loaded.origins.items() if origin.endswith("config.toml")} == set(KEYS)


def test_the_commented_stream_of_config_toml_is_a_stream_once_uncommented(tmp_path: Path) -> None:
    lines = (ROOT / "config.toml").read_text().splitlines()
    begin = lines.index("# [[stream]]")
    end = lines.index("", begin)
    path = toml(tmp_path, "\n".join(line.removeprefix("# ") for line in lines[begin:end]))
    assert [stream.name for stream in load_settings(path).settings.stream] == ["plant", "main"]


def test_without_any_source_the_defaults_are_in_force() -> None:
    loaded = load_settings()
    assert loaded.settings == Settings()
    assert set(loaded.origins.values()) == {"default", "[log]"}


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    path = toml(tmp_path, "[listener]\nport = 1\nbacklog = 2\nconnections_max = 3\n")
    environ = {"RUMQ_LISTENER_PORT": "11", "RUMQ_LISTENER_BACKLOG": "12"}
    loaded = load_settings(path, environ, [Flag("listener.port", "21", "--port")])
    listener = loaded.settings.listener
    assert (listener.port, listener.backlog, listener.connections_max) == (21, 12, 3)
    assert loaded.origins["listener.port"] == "--port"
    assert loaded.origins["listener.backlog"] == "environment RUMQ_LISTENER_BACKLOG"
    assert loaded.origins["listener.connections_max"] == str(path)


def test_several_listeners(tmp_path: Path) -> None:
    path = toml(tmp_path, "[[listener]]\nport = 1\n[[listener]]\nport = 2\nmaximum_qos = 1\n")
    loaded = load_settings(path, {}, [Flag("listener.port", "21", "--port")])
    assert [each.port for each in loaded.settings.listeners] == [21, 2]
    assert [each.maximum_qos for each in loaded.settings.listeners] == [2, 1]
    assert loaded.origins["listener.2.port"] == str(path)
    shown = in_force(loaded)
    assert [each["port"] for each in tomllib.loads(shown)["listener"]] == [21, 2]


def test_a_fault_in_another_listener_is_told_with_its_number(tmp_path: Path) -> None:
    path = toml(tmp_path, '[[listener]]\nport = 1\n[[listener]]\nport = 70000\nhots = "x"\n')
    told = refusals(path)
    assert len(told) == 2
    assert all("listener number 2" in each for each in told)


def test_the_later_of_two_flags_wins() -> None:
    flags = [Flag("listener.port", "1", "--port"), set_("listener.port", "2")]
    assert load_settings(flags=flags).settings.listener.port == 2


def test_every_key_has_an_environment_variable_that_takes_its_default_as_text() -> None:
    environ = {
        name: default if isinstance(default := KEYS[key].default, str) else as_toml(default)
        for name, key in VARIABLES.items()
        if key in KEYS
    }
    loaded = load_settings(None, environ)
    assert loaded.settings == Settings()
    assert all(loaded.origins[key].startswith("environment") for key in KEYS)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("log.segment_bytes_max", "32 MiB", 32 * 2**20),
        ("log.segment_bytes_max", "1GiB", 2**30),
        ("log.segment_bytes_max", "100_000", 100_000),
        ("log.retention_seconds_max", "7d", 604_800),
        ("log.retention_seconds_max", "90m", 5400),
    ],
)
def test_bytes_and_seconds_may_be_written_with_a_suffix(key: str, text: str, value: int, tmp_path: Path) -> None:
    name = key.removeprefix("log.")
    assert getattr(load_settings(flags=[set_(key, text)]).settings.log, name) == value
    path = toml(tmp_path, f'[log]\n{name} = "{text}"\n' if " " in text else f"[log]\n{name} = {value}\n")
    assert getattr(load_settings(path).settings.log, name) == value


def test_a_refusal_names_source_key_value_and_what_is_allowed(tmp_path: Path) -> None:
    path = toml(tmp_path, '[log]\ndurability = "sometimes"\n')
    assert refusals(path) == [f'{path}: log.durability = "sometimes": expected "process", "disk" or "quorum"']
    assert refusals(None, {"RUMQ_LISTENER_PORT": "99999"}) == [
        "environment RUMQ_LISTENER_PORT: listener.port = 99999: expected a whole number, 0 to 65535"
    ]
    assert refusals(None, None, set_("mqtt.maximum_qos", "two")) == [
        '--set: mqtt.maximum_qos = "two": expected a whole number, 0 to 2'
    ]


def test_all_faults_of_all_sources_are_reported_at_once(tmp_path: Path) -> None:
    path = toml(tmp_path, '[listener]\nport = "x"\nhots = "a"\n[mqtt]\nmaximum_qos = 3\n')
    faults = refusals(path, {"RUMQ_LOG_LINGER_MS": "soon"}, set_("data.dir", ""), set_("log.x", "1"))
    assert [fault.split(":")[-2].split(" =")[0].strip() for fault in faults] == [
        "listener.port", "listener.hots", "mqtt.maximum_qos", "log.linger_ms", "data.dir", "log.x",
    ]  # fmt: skip


def test_a_value_that_a_later_source_overrides_is_checked_all_the_same(tmp_path: Path) -> None:
    path = toml(tmp_path, "[listener]\nport = 70000\n")
    assert len(refusals(path, None, set_("listener.port", "1883"))) == 1


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("[log]\ndurabilty = 1", "log.durability"),
        (
            "[mqtt]\nport = 1883",
            "listener.port or cluster.port or flight.port or gateway.port or grpc.port or kafka.port",
        ),  # the right key in the wrong section
        ("port = 1883", "listener.port or cluster.port or flight.port or gateway.port or grpc.port or kafka.port"),
        ("[lgo]", "log"),
        ("[[streams]]", "stream"),
        ("[[stream]]\nname = 'a'\nfilters = ['a']\nparttions = 2", "partitions"),
    ],
)
def test_an_unknown_key_is_refused_with_the_one_that_was_meant(text: str, meant: str, tmp_path: Path) -> None:
    [fault] = refusals(toml(tmp_path, text))
    assert fault.endswith(f"did you mean {meant}?")


def test_a_misspelt_variable_is_refused_and_a_stranger_s_is_left_alone() -> None:
    """Container platforms add variables named after the service, such as RUMQ_SERVICE_HOST."""
    [fault] = refusals(None, {"RUMQ_LOG_DURABILTY": "disk"})
    assert fault == "environment RUMQ_LOG_DURABILTY: no such setting; did you mean RUMQ_LOG_DURABILITY?"
    strangers = {"RUMQ_SERVICE_HOST": "10.0.0.1", "RUMQ_PORT_1883_TCP_ADDR": "x", "RUMQ_KERNELS": "python"}
    assert load_settings(None, strangers).settings == Settings()


@pytest.mark.parametrize("raw", ["true", "1.5", "nan", '"1883"', "[1]", "-1", "1970-01-01", "{}", "9" * 5000])
def test_a_port_is_nothing_but_a_small_whole_number(raw: str, tmp_path: Path) -> None:
    assert len(refusals(toml(tmp_path, f"[listener]\nport = {raw}\n"))) == 1


@pytest.mark.parametrize("raw", ["nan", "inf", "0", "true"])
def test_a_time_limit_is_a_finite_number(raw: str) -> None:
    assert len(refusals(None, None, set_("listener.connect_seconds_max", raw))) == 1


@pytest.mark.parametrize("content", [b"[log", b"\xff\xfe", b"a = 1\na = 2", None])
def test_a_file_that_cannot_be_read_is_named(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    if content is not None:
        path.write_bytes(content)
    [fault] = refusals(path)
    assert fault.startswith(f"{path}: ")


def test_a_stream_inherits_from_log_what_it_leaves_out(tmp_path: Path) -> None:
    text = """
        [log]
        durability = "process"
        retention_seconds_max = "7d"
        [[stream]]
        name = "orders"
        filters = ["orders/#"]
        durability = "disk"
    """
    loaded = load_settings(toml(tmp_path, text))
    orders, main = loaded.settings.stream
    assert (orders.durability, orders.retention_seconds_max) == ("disk", 604_800)
    assert (main.name, main.filters, main.durability) == ("main", ("#",), "process")
    assert loaded.origins["stream.orders.retention_seconds_max"] == "[log]"


def test_no_catch_all_is_added_where_one_is_given() -> None:
    loaded = load_settings(flags=[set_("stream", '[{name = "all", filters = ["a/+", "#"], partitions = 4}]')])
    assert [(stream.name, stream.partitions) for stream in loaded.settings.stream] == [("all", 4)]


@pytest.mark.parametrize(
    ("streams", "problem"),
    [
        ('[{name="Plant", filters=["a"]}]', "expected text of a-z"),
        ('[{name="../up", filters=["a"]}]', "expected text of a-z"),
        ('[{name="a\\n", filters=["a"]}]', "expected text of a-z"),
        ('[{name="a", filters=[]}]', "expected a list of MQTT topic filters"),
        ('[{name="a"}]', "filters is missing"),
        ('[{filters=["a"]}]', "name is missing"),
        ('[{name="a", filters=["a/#/b"]}]', "goes on after #"),
        ('[{name="a", filters=["a+/b"]}]', "not a whole level"),
        ('[{name="a", filters=["$share/g/a"]}]', "no shared subscriptions"),
        ('[{name="a", filters=[""]}]', "is empty"),
        ('[{name="a", filters=["a"]}, {name="a", filters=["b"]}]', "two streams have this name"),
        ('[{name="main", filters=["a"]}]', 'give it the filter "#", or another name'),
        ('[{name="a", filters=["#"]}, {name="b", filters=["b"]}]', "never reached: stream.a comes first"),
        ('[{name="a", filters=["b"]}, {name="b", filters=["b"]}]', "never reached: stream.a comes first"),
        ('[{name="a", filters=["b"], retention_bytes_max=100}]', "whole segments are deleted"),
        ('{name="a"}', "expected [[stream]] sections"),
        ("plant/#", "expected [[stream]] sections"),
    ],
)
def test_an_impossible_stream_is_refused(streams: str, problem: str) -> None:
    [fault] = refusals(None, {"RUMQ_STREAM": streams})
    assert problem in fault and fault.startswith(("environment RUMQ_STREAM", "default"))


def test_settings_that_contradict_each_other_are_refused() -> None:
    [fault] = refusals(None, None, set_("log.pending_bytes_max", "1 MiB"))
    assert "log.pending_bytes_max = 1_048_576: expected at least mqtt.packet_bytes_max, 16_777_216" in fault


def test_what_is_in_force_can_be_run_again(tmp_path: Path) -> None:
    flags = [set_("log.linger_ms", "7"), set_("stream", '[{name = "plant", filters = ["plant/#"]}]')]
    loaded = load_settings(flags=flags)
    shown = in_force(loaded)
    assert load_settings(toml(tmp_path, shown)).settings == loaded.settings
    [line] = [line for line in shown.splitlines() if line.startswith("linger_ms")]
    assert line.split() == ["linger_ms", "=", "7", "#", "--set"]


def test_a_config_error_survives_pickle() -> None:
    """Shards are processes."""
    with pytest.raises(ConfigError) as caught:
        load_settings(flags=[set_("log.durability", "x")])
    assert pickle.loads(pickle.dumps(caught.value)).faults == caught.value.faults


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Log().linger_ms = 1


def test_acknowledgements_wait_for_other_machines_only_in_a_cluster(tmp_path: Path) -> None:
    path = toml(tmp_path, '[log]\ndurability = "quorum"\n')
    [fault] = refusals(path)
    assert 'stream.main.durability = "quorum": expected "process" or "disk"' in fault and "[cluster]" in fault
    settings = Settings(stream=(Stream(durability="quorum"),))
    origins = {"stream.main.durability": "flag"}
    assert not list(unreplicated_streams(settings, origins, is_clustered=True))


CLUSTER = '[cluster]\nname = "demo"\nnode = "n1"\netcd = ["http://127.0.0.1:2379"]\n'


def test_a_cluster_has_its_shards_and_acknowledges_what_a_majority_has(tmp_path: Path) -> None:
    settings = load_settings(toml(tmp_path, CLUSTER + "shards = 5\n"), {}).settings
    assert (settings.shards.count, settings.log.durability, settings.stream[0].durability) == (
        5,
        "quorum",
        "quorum",
    )
    chosen = load_settings(toml(tmp_path, CLUSTER + '[log]\ndurability = "process"\n'), {}).settings
    assert chosen.stream[0].durability == "process"
    alone = load_settings(toml(tmp_path, CLUSTER + "replicas = 1\n"), {}).settings
    assert alone.stream[0].durability == "disk"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[cluster]\nnode = "n1"', "cluster.node"),
        (CLUSTER.replace('"n1"', '"a b"'), "cluster.node"),
        (CLUSTER.replace('node = "n1"\n', ""), "cluster.node"),
        ('[cluster]\nname = "demo"\nnode = "n1"', "cluster.etcd"),
        (CLUSTER + "replicas = 2", "cluster.replicas"),
        (CLUSTER + 'host = "10.0.0.1"', "cluster.host"),
        (CLUSTER + 'host = "*"', "cluster.host"),
        (CLUSTER + 'host = "node-1.lan"', "cluster.host"),
        (CLUSTER + "[shards]\ncount = 2", "shards.count"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused(text: str, key: str, tmp_path: Path) -> None:
    [fault] = refusals(toml(tmp_path, text))
    assert key in fault and "expected" in fault


def test_other_nodes_come_in_plain_only_on_loopback_or_where_a_setting_says_so(tmp_path: Path) -> None:
    for host in ("localhost", "127.0.1.2", "::1"):
        load_settings(toml(tmp_path, CLUSTER + f'host = "{host}"\n'), {})
    tls = 'tls_certificate = "n1.pem"\ntls_key = "n1.key"\ntls_authority = "ca.pem"\n'
    for more in ("insecure = true\n", tls):
        load_settings(toml(tmp_path, CLUSTER + 'host = "10.0.0.1"\n' + more), {})
    path = toml(tmp_path, CLUSTER + 'host = "10.0.0.1"\n')
    [fault] = refusals(path)
    assert str(path) in fault and 'cluster.host = "10.0.0.1": expected' in fault
    assert "localhost" in fault and "rumqd certs node" in fault and "cluster.insecure = true" in fault
