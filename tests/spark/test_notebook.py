"""examples/devices_to_daily_profile.ipynb runs as it is, makes its pictures, and its numbers are right."""

import base64
import json
import os
import shutil
import statistics
import struct
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples" / "devices_to_daily_profile.ipynb"
# Beside the notebook's own cells, before it takes down what it made.
TELL = """
import json
print(json.dumps({
    "profile": profile.to_dict("records"),
    "far": [[str(t), c, m, s] for t, c, m, s in far[["time", "celsius", "mean", "sd"]].itertuples(index=False)],
    "held": len(held),
}))
"""


def pixels(png: str) -> tuple[int, int]:
    """Width and height of a PNG in base64. PNG 1.2, 11.2.2."""
    data = base64.b64decode(png)
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    return width, height


@pytest.mark.timeout(300)
def test_it_runs_and_its_numbers_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (pip install nbclient ipykernel)")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    for name in ("matplotlib", "ipykernel", "pyspark", "vega_datasets"):
        pytest.importorskip(name, reason=f"{name} is not installed (pip install 'rumq[dev,examples,spark]')")
    if shutil.which("java") is None:
        pytest.skip("Java is not installed (openjdk-17-jre-headless)")
    from examples.readings import temperatures

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx1g")
    made = nbformat.read(NOTEBOOK, 4)
    assert not any(cell.get("outputs") for cell in made.cells), "commit it without outputs"
    made.cells.insert(len(made.cells) - 1, nbformat.v4.new_code_cell(TELL))
    client = nbclient.NotebookClient(made, timeout=120, resources={"metadata": {"path": str(NOTEBOOK.parent)}})
    client.execute()

    shown = [output for cell in made.cells for output in cell.get("outputs", [])]
    pictures = [output.data["image/png"] for output in shown if "image/png" in output.get("data", {})]
    assert len(pictures) == 2 and all(min(pixels(one)) > 200 for one in pictures)
    told: dict[str, Any] = json.loads(made.cells[-2].outputs[-1].text)

    hours: dict[tuple[str, int], list[float]] = defaultdict(list)
    roof: list[tuple[str, float]] = []
    for city, when, celsius in temperatures():
        hours[city, int(when[11:13])].append(celsius)
        if city == "seattle" and len(roof) < 2000:
            roof.append((when, {500: 85.0, 501: 85.0, 1200: -127.0, 1777: 85.0}.get(len(roof), celsius)))
    profile = {(row["station"], row["hour"]): (row["mean"], row["min"], row["max"]) for row in told["profile"]}
    assert len(told["profile"]) == 48
    assert profile == {
        key: (pytest.approx(statistics.fmean(values)), min(values), max(values)) for key, values in hours.items()
    }
    assert told["held"] == 2000
    values = [celsius for _, celsius in roof]
    assert told["far"] == [
        [
            roof[n][0].replace("T", " "), values[n],
            pytest.approx(statistics.fmean(values[:n])), pytest.approx(statistics.stdev(values[:n])),
        ]
        for n in (500, 501, 1200, 1777)
    ]  # fmt: skip
