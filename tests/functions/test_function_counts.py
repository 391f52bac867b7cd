"""What a function has done is counted, by what happened, and can be read by another process."""

from pathlib import Path

from rumq.functions.function_counts import FunctionCounts, read_figures, write_figures


def test_figures_go_through_a_file(tmp_path: Path) -> None:
    assert read_figures(tmp_path) == {}
    counts = FunctionCounts()
    counts.count(records=10, results=7)
    counts.count(refused=3)
    counts.failed("stalled")
    counts.stands("main/g1/p0", behind=5, is_held=True)
    counts.stands("main/g1/p1", behind=2, is_held=False)
    write_figures(tmp_path, {"mean": counts})
    found = read_figures(tmp_path)["mean"]
    assert (found["records"], found["results"], found["refused"], found["passed"]) == (10, 7, 3, 0)
    assert found["failures"]["stalled"] == 1 and found["failures"]["raised"] == 0
    assert (found["behind"], found["held"]) == (7, 1)
    counts.stands("main/g1/p0", behind=0, is_held=False)
    assert (counts.figures()["behind"], counts.figures()["held"]) == (2, 0)
