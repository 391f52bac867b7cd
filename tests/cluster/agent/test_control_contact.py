"""Whether the control plane answers is told once when it stops, and once when it is back. Time jumps."""

import structlog
import trio
import trio.testing

from rumq.cluster.agent.control_contact import LOST_SECONDS, ControlContact


def test_a_silence_is_told_once_and_its_end_once() -> None:
    lost: list[float] = []

    async def main() -> None:
        contact = ControlContact(lambda: lost.append(trio.current_time()))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(contact.watch)
            await trio.sleep(LOST_SECONDS / 2)
            contact.answered()
            await trio.sleep(LOST_SECONDS * 0.9)
            assert contact.lost_seconds == 0
            contact.failed(OSError("refused"))
            await trio.sleep(LOST_SECONDS * 5)
            assert len(lost) == 1 and contact.lost_seconds > LOST_SECONDS * 5
            contact.answered()
            assert contact.lost_seconds == 0
            contact.answered()
            nursery.cancel_scope.cancel()

    with structlog.testing.capture_logs() as events:
        trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    assert [each["event"] for each in events] == ["cluster.etcd_lost", "cluster.etcd_back"]
    assert events[0]["why"] == "refused"
