"""Deletes retained messages by filter: an empty retained message is published to each topic, as the token's user.

So the rules of that user hold as for a client (MQTT 5.0, 3.3.1.3), and a deletion is as durable and as well copied as
any message: it is a record of the log, after which the topic has no retained message. Its other records stay."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from rumq.admin import requests as q
from rumq.admin.answers import Retained
from rumq.client.session.messages import Outgoing
from rumq.gateway.broker.publishers import PublishConnections
from rumq.gateway.contract.endpoints import Clear, Cleared, NotCleared
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.properties import Properties
from rumq.mqtt.topics import check_topic_filter

MESSAGES_MAX = 1_000  # that one request looks at
PAGE_ROWS = 200
REFUSED_TOLD = 20
Find = Callable[[q.Retained], Awaitable[Retained]]


async def clear(asked: Clear, user: str, find: Find, publishers: PublishConnections) -> Cleared:
    """find: a page of retained messages, without those that the token may not be told of

    raises: ValueError for what is no filter; ClientError, OSError of the connection to the broker"""
    try:
        check_topic_filter(asked.topic)
    except MqttFault as fault:
        raise ValueError(str(fault)) from None
    found, seen, after = Cleared(done=0), 0, asked.after
    while seen < MESSAGES_MAX:
        page = await find(q.Retained(topic=asked.topic, after=after, limit=PAGE_ROWS))
        topics = [row.topic for row in page.messages]
        if not topics:
            found.next = None
            return found
        deletions = [Outgoing(topic, b"", 1, True, Properties()) for topic in topics]
        refused, _ = await publishers.publish(user, deletions)
        found.done += len(topics) - len(refused)
        found.refused += len(refused)
        for number, (reason, why) in sorted(refused.items()):
            if len(found.first_refused) < REFUSED_TOLD:
                row = NotCleared(topic=topics[number], reason=int(reason), why=why or reason.text)
                found.first_refused.append(row)
        seen += len(topics)
        after = found.next = topics[-1]
        if not page.left_out and len(topics) < PAGE_ROWS:
            found.next = None
            break
    return found
