"""Which partitions the leader of a group has given to whom, as consumers write it: ConsumerProtocolAssignment.

The coordinator does not read it: it may be anything, and then nobody has been given a partition. Within a bound, as it
is for tools alone. https://github.com/apache/kafka/blob/4.0/clients/src/main/resources/common/message/ConsumerProtocolAssignment.json"""

from __future__ import annotations

from typing import NamedTuple

from rumq.kafka.groups.committed_offsets import Place
from rumq.kafka.groups.messages import KafkaGroupRow
from rumq.kafka.protocol.errors import Malformed
from rumq.kafka.protocol.fields import INT16, INT32, STRING, Array, Field, FieldReader, codec_of

CONSUMER = "consumer"  # the type of groups that use this form
READ_BYTES_MAX = 1 << 18  # of all members: what is behind that is not read
LAYOUT = codec_of(
    (
        Field("version", INT16),
        Field("topics", Array((Field("topic", STRING), Field("partitions", Array(INT32))))),
    ),
    0,
    flexible=False,
)


class Assigned(NamedTuple):
    """places: by member id; readers: client ids"""

    places: dict[str, list[Place]]
    readers: dict[Place, str]


def assigned_to(group: KafkaGroupRow) -> Assigned:
    found = Assigned({}, {})
    if group.protocol_type != CONSUMER:
        return found
    left = READ_BYTES_MAX
    for member in group.members:
        left -= len(member.assignment)
        if left < 0:
            break
        found.places[member.member_id] = places = places_of(member.assignment)
        for place in places:
            found.readers[place] = member.client_id
    return found


def places_of(assignment: bytes) -> list[Place]:
    try:
        read = LAYOUT.read(FieldReader(assignment)) if assignment else {"topics": ()}
    except Malformed:
        return []
    return [(each["topic"], number) for each in read["topics"] for number in each["partitions"]]
