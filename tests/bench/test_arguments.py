"""What the bench's command line takes, refuses and lists."""

import pytest

import bench.__main__
from bench.__main__ import main
from bench.suite.scenarios import SCENARIOS


def test_list_names_every_scenario_and_peer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    said = capsys.readouterr().out
    assert all(key in said for key in SCENARIOS)
    assert "mosquitto" in said


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--peers", "rumq,emqx"], "emqx: expected of rumq"),
        (["--scenario", "everything"], "invalid choice"),
        (["--runs", "0"], "from 1 on"),
        (["--seconds", "soon"], "expected seconds"),
        (["--broker-address", "1883"], "expected host:port"),
        (["--workers", "2"], "two numbers"),
    ],
)
def test_a_refusal_names_the_value_and_what_is_allowed(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        main(arguments)
    assert refused.value.code == 2
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize("found", ["python", "compiled but for rumq.net.kernels.frames"])
def test_what_is_not_compiled_is_not_measured_in_silence(
    found: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As it is in a clone whose rumq was installed elsewhere: what runs is the clone's."""
    monkeypatch.setattr(bench.__main__, "kernels", lambda: found)
    assert main(["list"]) == 0
    said = capsys.readouterr().err
    assert "NOT COMPILED" in said and f"(kernels: {found})" in said and "pip install -e ." in said
