"""Which versions of etcd have known faults."""

import pytest

from rumq.cluster.control.errors import ControlRefused
from rumq.cluster.control.etcd_version import known_faults


@pytest.mark.parametrize(
    ("version", "count"),
    [
        ("3.4.23", 3), ("3.4.31", 1), ("3.4.42", 0), ("3.5.12", 3), ("3.5.27", 1), ("3.5.28", 0), ("3.6.8", 1),
        ("3.6.9", 0), ("3.7.0", 0), ("4.0.0", 0), ("3.5.28-rc.0", 0), ("", 0), ("unknown", 0),
    ],
)  # fmt: skip
def test_faults_are_those_that_a_version_has(version: str, count: int) -> None:
    assert len(known_faults(version)) == count


def test_a_version_without_the_gateway_is_refused() -> None:
    with pytest.raises(ControlRefused, match=r"etcd 3\.3\.25 is too old.*3\.5\.28"):
        known_faults("3.3.25")
