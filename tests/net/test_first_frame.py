"""The first frame of a connection, behind which anything may come."""

import msgspec
import pytest

from rumq.cluster.links.greeting import Answer, GreetingRefused, Taken
from rumq.net.frames import encoded, maybe_first

ANSWERS: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)


@pytest.mark.parametrize("message", [Taken(), GreetingRefused("no"), GreetingRefused("for a long reason" * 9)])
@pytest.mark.parametrize("raw", [b"", b"raw", b"longer than a word"])
def test_it_is_cut_off_wherever_the_bytes_break(message: Answer, raw: bytes) -> None:
    frame = encoded(message, [raw])
    for end in range(len(frame)):
        assert maybe_first(ANSWERS, frame[:end], 1000) is None
    for behind in (b"", b"\xff" * 100):
        assert maybe_first(ANSWERS, frame + behind, 1000) == (message, raw, len(frame))


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\n", b"\x10\x00\x00\x00\xff\x00\x00\x00", b"\x02\x00\x00\x00\x00\x00\x00\x00"]
)
def test_nonsense_is_refused_before_it_is_kept(data: bytes) -> None:
    with pytest.raises(ValueError, match="a first frame of"):
        maybe_first(ANSWERS, data, 1000)


def test_another_message_is_refused() -> None:
    with pytest.raises(ValueError, match="no message"):
        maybe_first(ANSWERS, encoded({"a": 1}), 1000)
