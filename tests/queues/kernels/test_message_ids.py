"""Ids are put where their messages are."""

from __future__ import annotations

from typing import Any

import pytest

from rumq.queues.rules.messages import Pushed, PushResult
from rumq.queues.rules.names import MessageId
from tests.kernel_forms import forms


@pytest.mark.parametrize("kernel", forms("rumq.queues.kernels.message_ids"))
def test_ids_go_to_the_numbers_that_are_named(kernel: Any) -> None:
    results: list[PushResult] = [Pushed(None)] * 6
    kernel.put_ids(results, [0, 2, 4, 5], 1, 2, "sport", 16)
    assert results == [Pushed(None), Pushed(None), Pushed(MessageId("sport", 17)), Pushed(None),
                       Pushed(MessageId("sport", 18)), Pushed(None)]  # fmt: skip
    found = results[2]
    assert type(found) is Pushed and type(found.id) is MessageId and str(found.id) == "17@sport"
