"""Command lines of the export processes that a broker starts, by its settings. docs/guides/lake.md."""

from __future__ import annotations

import importlib.util
import sys

from rumq.errors import ConfigError, Fault
from rumq.settings.table import Settings


def exported_streams(settings: Settings) -> dict[str, list[str]]:
    """Target folder -> names of the streams exported there. raises: ConfigError without pyarrow"""
    found: dict[str, list[str]] = {}
    for stream in settings.stream:
        if stream.export_to:
            found.setdefault(stream.export_to, []).append(stream.name)
    if found and importlib.util.find_spec("pyarrow") is None:
        name = next(iter(found.values()))[0]
        raise ConfigError(
            Fault(
                "settings",
                f"stream.{name}.export_to",
                "",
                "Parquet needs pyarrow and numpy: pip install pyarrow numpy",
            )
        )
    return found


def export_commands(settings: Settings, data: str) -> list[list[str]]:
    """One command for each target folder."""
    return [
        [
            sys.executable, "-m", "rumq", "lake", "export", "--data", data, "--to", place, "--for-broker",
            "--events-format", settings.events.format, "--events-level", settings.events.level,
            *(word for name in names for word in ("--stream", name)),
        ]
        for place, names in exported_streams(settings).items()
    ]  # fmt: skip
