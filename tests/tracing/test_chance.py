"""Chance by the block: no byte is given twice, and the source is asked rarely."""

from rumq.tracing.chance import BLOCK_BYTES, Chance


def test_bytes_are_given_once_and_the_source_is_asked_by_the_block() -> None:
    asked: list[int] = []

    def random(size: int) -> bytes:
        asked.append(size)
        return b"".join((len(asked) * size + at).to_bytes(4, "big") for at in range(size // 4))

    chance = Chance(random)
    assert asked == []
    found = [chance(8) for _ in range(1000)]
    assert len(set(found)) == 1000 and {len(each) for each in found} == {8}
    assert asked == [BLOCK_BYTES] * 2
