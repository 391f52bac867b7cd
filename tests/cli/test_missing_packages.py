"""Commands that need a package that `pip install .` does not bring."""

from pathlib import Path

import pytest

from tests.cli.conftest import rumqd


@pytest.mark.parametrize(
    "words",
    ["log export --to x.parquet", "lake export --to lake", "lake verify lake", "lake table delta lake"],
)
def test_parquet_without_pyarrow_names_the_package_and_not_spark(tmp_path: Path, words: str) -> None:
    data = tmp_path / "data"
    (data / "main/g1").mkdir(parents=True)
    (data / "FORMAT").write_text("rumq 1\n")
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "pyarrow.py").write_text('raise ImportError("No module named pyarrow")\n')
    where = [] if words.startswith(("lake verify", "lake table")) else ["--data", str(data)]
    ended = rumqd(*words.split(), *where, env={"PYTHONPATH": str(tmp_path / "without")}, cwd=tmp_path)
    assert ended.status == 1
    assert "pip install pyarrow" in ended.err
    assert "spark" not in ended.err and "Traceback" not in ended.err
