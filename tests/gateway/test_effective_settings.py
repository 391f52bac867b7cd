"""The settings in force over REST, each with its source; what waits for a restart; no password of an address."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from rumq.process.gateway.effective_settings import told
from tests.gateway.conftest import Gateway, started


def rows(gateway: Gateway) -> dict[str, dict[str, Any]]:
    return {row["key"]: row for row in gateway.get("settings")["settings"]}


def test_each_setting_has_its_source_and_a_reload_tells_what_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.toml"
    config.write_text("[log]\nlinger_ms = 7\n[mqtt]\nreceive_maximum = 50\n")
    monkeypatch.setattr(
        "tests.broker_process.run_command",
        lambda *flags: [
            sys.executable, "-m", "rumq", "run", "--config", str(config), "--host", "127.0.0.1", "--port", "0", *flags,
        ],
    )  # fmt: skip
    gateway = started(tmp_path)
    try:
        found = rows(gateway)
        assert (found["log.linger_ms"]["value"], found["log.linger_ms"]["default"]) == (7, 5)
        assert str(config) in found["log.linger_ms"]["source"] or "file" in found["log.linger_ms"]["source"]
        assert "--set" in found["gateway.host"]["source"] or "flag" in found["gateway.host"]["source"]
        assert found["log.durability"]["source"] == "default" and found["log.durability"]["line"]
        assert not any(row["waits"] for row in found.values())
        config.write_text("[log]\nlinger_ms = 9\nsegment_bytes_max = 1048576\n")
        gateway.act("reload")
        gateway.broker.heard(lambda event: event["event"] == "gateway.reloaded")
        (told_by_broker,) = gateway.broker.named("settings.reloaded")
        found = rows(gateway)
        assert found["log.linger_ms"]["value"] == 9
        waits = {key for key, row in found.items() if row["waits"]}
        assert {key.split(".")[0] for key in waits} <= {key.split(".")[0] for key in told_by_broker["after_restart"]}
        assert bool(waits) == bool(told_by_broker["after_restart"])
        for token in ("reader", "sender"):
            assert gateway.ask("GET", "/api/v1/settings", token=token).status == 403
    finally:
        gateway.broker.end()


def test_a_password_of_an_address_is_not_told() -> None:
    assert told("s3://key:secret@host/bucket") == "s3://...@host/bucket"
    assert told(["redis://a:b@h", 3, "/var/lib"]) == ["redis://...@h", 3, "/var/lib"]
