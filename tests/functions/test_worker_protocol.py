"""Messages between the function process and a worker, in whatever pieces they arrive."""

import pytest
from hypothesis import given
from hypothesis.strategies import binary, integers, lists

from rumq.functions.worker_protocol import (
    HEAD,
    RAISED,
    RESULT,
    SENTENCE_CHARACTERS_MAX,
    WorkerMessageReader,
    packed,
    packed_sentence,
)


@given(lists(binary(max_size=20), max_size=6), integers(1, 40))
def test_messages_come_whole(bodies: list[bytes], piece_bytes: int) -> None:
    sent = b"".join(packed(RESULT, each) for each in bodies)
    reader, found = WorkerMessageReader(100), []
    for at in range(0, len(sent), piece_bytes):
        reader.add(sent[at : at + piece_bytes])
        while (message := reader.maybe_message()) is not None:
            found.append(message.body)
    assert found == bodies


def test_a_message_that_is_too_long_is_refused_before_it_is_there() -> None:
    reader = WorkerMessageReader(10)
    reader.add(HEAD.pack(RESULT, 11))
    with pytest.raises(ValueError, match="10 at most"):
        reader.maybe_message()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Traceback\n  File\nValueError: no number\n", "ValueError: no number"),
        ("", ""),
        ("x" * 1000, "x" * SENTENCE_CHARACTERS_MAX),
        ("broken \ud800", "broken \\ud800"),
    ],
)
def test_of_a_traceback_the_last_line_is_told(text: str, sentence: str) -> None:
    reader = WorkerMessageReader(10_000)
    reader.add(packed_sentence(RAISED, text))
    message = reader.maybe_message()
    assert message is not None and message.sentence == sentence
