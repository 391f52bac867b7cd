"""What goes with a connection, there and back."""

import msgspec
import pytest

from rumq.auth.identity import Certificate, Identity
from rumq.session.moves.moved_client import MovedClient, decode_moved, encode_moved, shape_for
from rumq.session.state.session import Shape
from rumq.session.state.session_owner import Owner

MOVED = MovedClient(
    shard=1, epoch=4, listener=0, client_id="d", mount="", user="anna", number=7, version=5, keep_alive=30.0,
    packet_bytes_max=1000, alias_out=5, window_limit=20, wants_reason_strings=True, claimed_client_id="d",
    claimed_user="anna", authentication_method=None,
    identity=Identity("anna", frozenset({"ops"}), "password", Certificate("cn", "CN=cn", ("a",)), 5, None),
    certificate=None, connected_seconds=3.0, aliases=[(2, b"t/1")], unparsed=b"in", unsent=b"out",
)  # fmt: skip


def test_it_is_read_as_it_was_written_and_bytes_behind_it_are_the_clients() -> None:
    assert decode_moved(encode_moved(MOVED)) == MOVED
    assert decode_moved(encode_moved(MOVED) + b"more").unparsed == b"inmore"
    assert MOVED.owner == Owner("anna", "") and shape_for(MOVED) == Shape(5, 1000, 5)


def test_a_bridge_is_sent_qos_1_as_qos_2_at_the_next_leader_too_if_both_know_how() -> None:
    moved = msgspec.structs.replace(MOVED, raises_qos=True)
    assert shape_for(decode_moved(encode_moved(moved))) == Shape(5, 1000, 5, True)
    before = msgspec.msgpack.encode(msgspec.msgpack.decode(encode_moved(MOVED)[4:])[:-1])
    assert decode_moved(len(before).to_bytes(4, "big") + before) == MOVED, "of a version that does not know it"


@pytest.mark.parametrize("data", [b"", b"\0\0\0\2\x90\x90", encode_moved(MOVED)[:-3]])
def test_what_is_no_state_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        decode_moved(data)
