"""`rumqd spark`: what is missing is said before Spark says it, and where a query stands."""

import sys
from pathlib import Path

import pytest

from rumq.cli.main import main
from rumq.spark.runtime.doctor import java, workers


def program(path: Path, says: str) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("says", "seen", "well"),
    [('openjdk version "17.0.15" 2025-04-15', "Java 17.0.15", True),
     ('java version "1.8.0_292"', "Java 1.8.0_292", False),
     ('openjdk version "21" 2023-09-19', "Java 21", True), ("segmentation fault", "does not say its version", False)],
)  # fmt: skip
def test_java_is_found_and_new_enough(tmp_path: Path, says: str, seen: str, well: bool) -> None:
    program(tmp_path / "bin/java", says)
    for environment in ({"JAVA_HOME": str(tmp_path)}, {"PATH": f"{tmp_path}/bin"}):
        found = java(environment)
        assert seen in found.what and (not found.do) == well


def test_no_java_is_said_with_the_package_to_install(tmp_path: Path) -> None:
    assert "no Java: java is not on the PATH" in java({"PATH": str(tmp_path)}).what
    assert "is no program" in java({"JAVA_HOME": str(tmp_path)}).what
    assert "openjdk-17-jre-headless" in java({"PATH": str(tmp_path)}).do


def test_the_python_of_workers_is_held_against_the_drivers(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed (pip install 'rumq[spark]')")
    assert not workers({"PYSPARK_PYTHON": sys.executable, "PATH": ""}).do
    program(tmp_path / "python3", "No module named rumq")
    wrong = workers({"PATH": str(tmp_path)})
    assert "as the PATH says: No module named rumq" in wrong.what
    assert wrong.do.startswith(f"set PYSPARK_PYTHON={sys.executable}")
    assert "which is no program" in workers({"PYSPARK_PYTHON": "python9", "PATH": ""}).what


def checkpoint_at(root: Path, *, offsets: int, commits: int) -> str:
    for name, count in (("offsets", offsets), ("commits", commits)):
        (root / name).mkdir(parents=True)
        for n in range(count):
            source = f'{{"v": 1, "lsn": {{"main/g1/p0": {100 * (n + 1)}}}}}'
            (root / name / str(n)).write_text(f"v1\n{{}}\n{source}\n" if name == "offsets" else "v1\n{}\n")
            (root / name / f".{n}.crc").write_bytes(b"crc")
    return str(root)


def test_offsets_of_a_query_are_those_of_its_last_batch_that_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["spark", "offsets", checkpoint_at(tmp_path / "a", offsets=3, commits=2)]) == 0
    said = capsys.readouterr()
    assert said.out == '{"main/g1/p0": 200}\n'
    assert said.err.startswith("batch 1 is done, and one more has begun")
    assert main(["spark", "offsets", checkpoint_at(tmp_path / "b", offsets=2, commits=2)]) == 0
    assert capsys.readouterr().err == "batch 1 is done\n"


def test_what_is_no_checkpoint_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spark", "offsets", str(tmp_path)]) == 1
    assert "no directory offsets" in capsys.readouterr().err
    assert main(["spark", "offsets", checkpoint_at(tmp_path / "a", offsets=1, commits=0)]) == 1
    assert "no batch is done yet" in capsys.readouterr().err


def test_without_java_a_session_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from rumq.spark.runtime.doctor import check_java
    from rumq.table.errors import NoJava

    for environment in ({"PATH": str(tmp_path)}, {"PATH": "/usr/bin", "JAVA_HOME": str(tmp_path)}):
        with pytest.raises(NoJava, match=r"no Java.*install Java 17 \(Debian: openjdk-17-jre-headless\)"):
            check_java(environment)
    pyspark = pytest.importorskip("pyspark.sql")
    import rumq.spark

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(pyspark.SparkSession, "getActiveSession", lambda: None)
    with pytest.raises(NoJava):
        rumq.spark.session("none", "local[1]")
