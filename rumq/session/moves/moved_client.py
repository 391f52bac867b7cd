"""What the next leader of a shard needs of a connection, beside its socket and its session, to go on with it.

The session is in the journal (`rumq.shards.recovery.journal_writer`), to the last message. Here is what a session does
not have: who the client is, what it said in CONNECT, and bytes on their way. Opens no socket, reads no clock."""

from __future__ import annotations

import msgspec

from rumq.auth.identity import Certificate, Identity
from rumq.session.protocol.connected import Connected
from rumq.session.state.session import Shape, shape_of
from rumq.session.state.session_owner import Owner

LENGTH_BYTES = 4
UNSENT_BYTES_MAX = 8 << 20  # of one connection; with more it is not moved


class MovedClient(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """One connection. shard, epoch: of the leader that it has left; listener: number, or -1 for the gateway's

    client_id, mount, user, number: of its session, mount None: the session has no owner
    aliases: topic aliases that the client has set, with their topics; alias_out: how many it takes
    unparsed: bytes of the client that nobody has handled; unsent: bytes for the client, whole packets at the end"""

    shard: int
    epoch: int
    listener: int
    client_id: str
    mount: str | None
    user: str | None
    number: int
    version: int
    keep_alive: float
    packet_bytes_max: int
    alias_out: int
    window_limit: int
    wants_reason_strings: bool
    claimed_client_id: str
    claimed_user: str
    authentication_method: str | None
    identity: Identity
    certificate: Certificate | None
    connected_seconds: float
    aliases: list[tuple[int, bytes]]
    unparsed: bytes
    unsent: bytes
    raises_qos: bool = False  # as of `Shape`; a version that does not know it sends QoS 1 as QoS 1

    @property
    def owner(self) -> Owner | None:
        return None if self.mount is None else Owner(self.user, self.mount)


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(MovedClient)


def encode_moved(moved: MovedClient) -> bytes:
    data = _encoder.encode(moved)
    return len(data).to_bytes(LENGTH_BYTES, "big") + data


def decode_moved(data: bytes) -> MovedClient:
    """Bytes behind the state are the client's, too. raises: ValueError"""
    end = LENGTH_BYTES + int.from_bytes(data[:LENGTH_BYTES], "big")
    moved = _decoder.decode(data[LENGTH_BYTES:end])
    return msgspec.structs.replace(moved, unparsed=moved.unparsed + data[end:]) if data[end:] else moved


def capture(link: Connected, shard: int, epoch: int, unparsed: bytes, unsent: bytes) -> MovedClient:
    """A connection as it is. unparsed, unsent: of its transport; the session must be in the journal by now"""
    client, session, wire = link.client, link.session, link.wire
    assert client.identity is not None
    owner = session.owner
    identity = client.identity
    known = wire.aliases or []
    return MovedClient(
        shard=shard, epoch=epoch, listener=-1 if client.policy.is_gateway else client.policy.index,
        client_id=session.client_id,
        mount=None if owner is None else owner.mount, user=None if owner is None else owner.user,
        number=session.number, version=client.version, keep_alive=client.keep_alive,
        packet_bytes_max=client.packet_bytes_max, alias_out=getattr(session.shape, "alias_max", 0),
        window_limit=link.window_limit, wants_reason_strings=bool(client.wants_reason_strings),
        claimed_client_id=client.claimed_client_id, claimed_user=client.claimed_user,
        authentication_method=client.authentication_method,
        identity=Identity(
            identity.user, identity.groups, identity.method, identity.certificate, identity.expires_us,
            identity.client_id,
        ),
        certificate=client.certificate,
        connected_seconds=max(0.0, client.broker.clock.monotonic - client.connected_at),
        aliases=[(number, bytes(topic)) for number, topic in enumerate(known) if topic is not None],
        unparsed=unparsed, unsent=unsent,
        raises_qos=session.raises_qos,
    )  # fmt: skip


def shape_for(moved: MovedClient) -> Shape:
    return shape_of(5 if moved.version == 5 else 4, moved.packet_bytes_max, moved.alias_out, moved.raises_qos)
