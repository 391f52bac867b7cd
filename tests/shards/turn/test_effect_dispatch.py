"""Each effect goes to the one part that is registered for its kind."""

import pytest

from router.effects import ReportShareDone, ReportShareReady
from rumq.shards.turn.effect_dispatch import EffectDispatch


def test_an_effect_is_carried_out_by_the_part_of_its_kind() -> None:
    seen: list[object] = []
    effects = EffectDispatch()
    effects.handle({ReportShareReady: seen.append})
    ready = ReportShareReady("$share/g/t")
    effects.carry_out(ready)
    assert seen == [ready]
    with pytest.raises(KeyError):
        effects.carry_out(ReportShareDone("$share/g/t", []))
