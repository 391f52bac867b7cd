"""`python -m bench bridge` in its shortest form: all that is published here is heard there, and whose CPU it cost."""

import pytest

from bench.bridge.relaying import measure


@pytest.mark.parametrize("qos", [0, 1])
def test_what_a_bridge_relays_is_measured(qos: int) -> None:
    found = measure(qos, seconds=0.2, inflight_max=1_000)
    assert found["sent"] > 0 and found["out_of_order_or_twice"] == 0
    if qos:
        assert found["delivered"] == found["sent"]
    assert all(found[f"{name}_cpu_us_per_message"] > 0 for name in ("edge", "bridge", "centre"))
