"""The table of rumq.v1.BrokerService: each of its calls and who answers it. A second service is a table of its own."""

from __future__ import annotations

from rumq.services.calls.call import CallMethod, Service
from rumq.services.calls.describe_calls import DescribeCalls
from rumq.services.calls.publish_calls import PublishCalls
from rumq.services.calls.read_calls import ReadCalls

NAME = "rumq.v1.BrokerService"


def broker_service(publish: PublishCalls, read: ReadCalls, describe: DescribeCalls) -> Service:
    return Service(
        NAME,
        (
            CallMethod("Publish", publish.publish),
            CallMethod("PublishStream", publish.publish_stream, takes_stream=True, gives_stream=True),
            CallMethod("Subscribe", read.subscribe, gives_stream=True),
            CallMethod("Fetch", read.fetch),
            CallMethod("Broadcast", describe.broadcast),
            CallMethod("DescribeTopics", describe.topics),
            CallMethod("DescribeStreams", describe.streams),
            CallMethod("DescribeClients", describe.clients),
        ),
    )
