"""What a turn gathers for its next step: records of clients, commands for the router, links whose readers go on."""

from __future__ import annotations

from typing import NamedTuple

from rumq.loop.queues import ReadyLinks, StepQueue
from rumq.mqtt.kernels.batch import Batch


class StepInput(NamedTuple):
    """batches: what clients have published in this step, by partition; commands: for the next step

    ready: links whose readers go on in the next step"""

    batches: list[Batch]
    commands: StepQueue
    ready: ReadyLinks


def empty_input(partitions: int) -> StepInput:
    return StepInput([Batch() for _ in range(partitions)], StepQueue(), ReadyLinks())
