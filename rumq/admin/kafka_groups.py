"""Consumer groups of the Kafka server: what is asked of it over its socket, and what it answers.

`rumq.kafka.reports.group_report` answers; the gateway and `rumqd ask` ask. A group belongs to a user."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import msgspec
from msgspec import Struct

from rumq.admin import requests as q
from rumq.admin.answers import Answer
from rumq.admin.units import field, number, text

ROWS_MAX, ROWS_USUAL = 200, 100
SKIPPED_MAX = 100_000_000

User = Annotated[str, text("whose group it is; empty: of clients without a login")]
Group = Annotated[str, text("its group.id", 255, 1)]


class KafkaPage(q.Request, kw_only=True):
    limit: Annotated[int, number("rows at most", "rows", 1, ROWS_MAX)] = ROWS_USUAL
    offset: Annotated[int, number("rows to skip", "rows", 0, SKIPPED_MAX)] = 0


class FindGroups(KafkaPage, kw_only=True):
    group: Annotated[str | None, field("a group.id, or a pattern with * and ?; null: all")] = None
    user: Annotated[str | None, field("only groups of this user; null: all")] = None


class FindLag(KafkaPage, kw_only=True):
    group: Group
    user: User = ""


class FindMembers(KafkaPage, kw_only=True):
    group: Group
    user: User = ""


class DeleteGroup(q.Request, kw_only=True):
    group: Group
    user: User = ""


class ResetGroup(q.Request, kw_only=True):
    group: Group
    user: User = ""
    topic: Annotated[str, text("a stream or a view, as Kafka's clients see it", 255, 1)]
    partition: Annotated[int | None, field("null: all of the topic")] = None
    to: Annotated[
        str,
        msgspec.Meta(
            pattern="^(earliest|latest|[0-9]{1,18})$",
            description="earliest, latest, or an offset; one that is not kept is the next that is",
        ),
    ]


class ConsumerGroupRow(Struct, kw_only=True):
    """A consumer group of Kafka's clients."""

    user: Annotated[str, field("whose it is; empty: of clients without a login")]
    group: Annotated[str, field("its group.id")]
    state: Annotated[str, field("Empty, PreparingRebalance, CompletingRebalance or Stable")]
    protocol: Annotated[str, field("by which its leader assigns; empty: none yet")]
    members: Annotated[int, field("", "consumers")]
    partitions: Annotated[int, field("of topics, of which it has committed an offset", "partitions")]
    lag: Annotated[int, field("of these from what was committed to the end, added up", "records")]


class GroupLagRow(Struct, kw_only=True):
    """How far a group is in one partition of a topic. Records of the stream: of a view, also those it leaves out."""

    topic: Annotated[str, field("a stream or a view, as Kafka's clients see it")]
    partition: int
    committed: Annotated[int | None, field("the next record that it is to read; null: it has committed none", "lsn")]
    first: Annotated[int | None, field("the first record that is kept; null: there is no such partition", "lsn")]
    end: Annotated[int | None, field("of what can be read; null: there is no such partition", "lsn")]
    lag: Annotated[int | None, field("from what was committed to the end; null: one of them is unknown", "records")]
    committed_us: Annotated[int | None, field("when; null: never", "µs since 1970")]
    client_id: Annotated[str, field("who reads it; empty: nobody, or its assignment has another form")]


class GroupMemberRow(Struct, kw_only=True):
    """A consumer of a group. Long names are cut."""

    member_id: str
    client_id: str
    host: Annotated[str, field("its address")]
    instance_id: Annotated[str | None, field("of a static member; null: it is none")]
    partitions: Annotated[list[str], field("that it was assigned, the first ones; none: see client_id of a partition")]


class KafkaRows(Answer, kw_only=True):
    left_out: Annotated[int, field("rows that match and follow", "rows")] = 0


class ConsumerGroups(KafkaRows, kw_only=True):
    groups: list[ConsumerGroupRow]


class GroupLag(KafkaRows, kw_only=True):
    partitions: list[GroupLagRow]


class GroupMembers(KafkaRows, kw_only=True):
    members: list[GroupMemberRow]


class GroupDone(Answer, kw_only=True):
    """On disk, and what the next member of the group is told."""

    done: Annotated[int, field("offsets that were moved or deleted", "partitions")]


KafkaQuestion = FindGroups | FindLag | FindMembers
KafkaAction = DeleteGroup | ResetGroup


class KafkaOperation(NamedTuple):
    """destroys: what is lost by it; empty: it changes nothing"""

    request: type[KafkaQuestion | KafkaAction]
    answer: type[KafkaRows | GroupDone]
    summary: str
    destroys: str = ""


KAFKA_OPERATIONS = {
    "kafka_groups": KafkaOperation(FindGroups, ConsumerGroups, "consumer groups of Kafka's clients, with their lag"),
    "kafka_lag": KafkaOperation(
        FindLag, GroupLag, "how far a consumer group of Kafka's clients is, by topic and partition"
    ),
    "kafka_members": KafkaOperation(FindMembers, GroupMembers, "members of a consumer group of Kafka's clients"),
    "reset_kafka_group": KafkaOperation(
        ResetGroup, GroupDone, "move a consumer group of Kafka's clients that has no members, within a topic",
        "its place in the topic",
    ),
    "delete_kafka_group": KafkaOperation(
        DeleteGroup, GroupDone, "delete a consumer group of Kafka's clients that has no members",
        "all that it has committed",
    ),
}  # fmt: skip


class KafkaLine(Struct, kw_only=True):
    """A line to the socket. ask: a name of KAFKA_OPERATIONS; request: as it says"""

    ask: str
    request: msgspec.Raw = msgspec.Raw(b"{}")


class KafkaReply(Struct, kw_only=True, omit_defaults=True):
    """A line of the socket: the answer; or that what was asked for is not there, is in use, or cannot be told or done
    now, in a sentence."""

    answer: msgspec.Raw = msgspec.Raw(b"null")
    missing: str = ""
    conflict: str = ""
    refused: str = ""
