"""Whether bridges of earlier settings have left something: sessions, which hold messages for nobody, or figures.

The process of the bridges ends and removes both, so it runs once more where this is so."""

from __future__ import annotations

from pathlib import Path

from rumq.bridge.counts import FOLDER, read_figures
from rumq.bridge.pairing import PairingFiles


def has_bridges(data: str) -> bool:
    """data: the data directory. cost: a look into a folder that most brokers do not have"""
    folder = Path(data, FOLDER)
    return bool(PairingFiles(folder).names() or read_figures(folder))
