"""The table of rumq.v1.BrokerService: each of its calls and who answers it. A second service is a table of its own."""

from __future__ import annotations

from rumq.services.calls.call import Method, Service
from rumq.services.calls.describe_calls import DescribeCalls
from rumq.services.calls.publish_calls import PublishCalls
from rumq.services.calls.read_calls import ReadCalls

NAME = "rumq.v1.BrokerService"


def broker_service(publish: PublishCalls, read: ReadCalls, describe: DescribeCalls) -> Service:
    return Service(
        NAME,
        (
            Method("Publish", publish.publish),
            Method("PublishStream", publish.publish_stream, takes_stream=True, gives_stream=True),
            Method("Subscribe", read.subscribe, gives_stream=True),
            Method("Fetch", read.fetch),
            Method("Broadcast", describe.broadcast),
            Method("DescribeTopics", describe.topics),
            Method("DescribeStreams", describe.streams),
            Method("DescribeClients", describe.clients),
        ),
    )
