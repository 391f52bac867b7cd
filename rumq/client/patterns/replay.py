"""Records of a rumq broker's log, from a place in the past on. docs/reference/replay.md.

A replay has a connection and a session of its own: one that is read slowly delays nothing else of the client, and after
a loss of the connection it goes on where it was."""

from collections.abc import AsyncIterator
from typing import Any

from rumq.client.patterns.client_port import ClientPort, OpenAnother, receive_from
from rumq.client.session.messages import Message
from rumq.errors import ConnectionLost

SESSION_SECONDS = 300  # so long the broker keeps the place of a replay whose connection is lost
FROM, END = "rumq-from", "rumq-end"  # user properties of SUBSCRIBE; END also of the message that says it is reached


async def replay(another: OpenAnother, topic_filter: str, start: str, *, follow: bool) -> AsyncIterator[Message]:
    """Each record once, in the order of its partition. Ends where the log ended at the start, or never (follow).

    raises: Refused, ConnectionLost"""
    client = await another(
        {"client_id": "", "clean_start": True, "session_expiry": SESSION_SECONDS, "will": None, "version": 5}
    )
    try:
        wanted = [(FROM, start)] if follow else [(FROM, start), (END, "yes")]
        await client.subscribe(topic_filter, qos=1, user_properties=wanted)
        first = client.connack
        next_lsns: dict[str, int] = {}
        while True:
            messages = await receive_from(client)
            if client.connack is not first:
                first = check_same_session(client)
            for message in messages:
                if message.topic == END_TOPIC and not follow:
                    await client.leave(end_session=True)
                    return
                if is_new(message, next_lsns):
                    yield message
            client.acknowledge_some(messages)
    finally:
        client.stop()


END_TOPIC = "$log/end"


def is_new(message: Message, next_lsns: dict[str, int]) -> bool:
    """Whether a record has not been seen; notes it. After a reconnection those in flight come again."""
    if (partition := message.partition) is None or (lsn := message.lsn) is None:
        return True
    if lsn < next_lsns.get(partition, 0):
        return False
    next_lsns[partition] = lsn + 1
    return True


def check_same_session(client: ClientPort) -> Any:
    """raises: ConnectionLost where the broker has lost the place of the replay"""
    if not client.connack.session_present:
        raise ConnectionLost("the broker has lost the session of the replay, and with it the place: begin again")
    return client.connack
