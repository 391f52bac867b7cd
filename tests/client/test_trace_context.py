"""The context of a trace goes with a message, from the span that publishes to the one that handles it."""

import trio
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from rumq.client import Outgoing, context_of, opentelemetry_context
from rumq.mqtt.packets import Puback, Publish
from rumq.mqtt.properties import Properties
from tests.client.fake_broker import simulated
from tests.client.meeting import connected, take

TRACER = TracerProvider().get_tracer("test")


@simulated
async def test_a_span_that_handles_a_message_belongs_to_the_trace_that_published_it() -> None:
    async with connected(trace=opentelemetry_context) as (client, peer), trio.open_nursery() as nursery:
        with TRACER.start_as_current_span("publish") as span:

            @nursery.start_soon
            async def answer() -> None:
                sent.append(await peer.receive())
                await peer.send(Puback(1))

            sent: list[Publish] = []
            await client.publish("a", b"", qos=1)
        [(name, value)] = sent[0].properties["user_properties"]
        assert name == "traceparent" and f"{span.get_span_context().trace_id:032x}" in value
        await peer.send(Publish("a", b"", properties=sent[0].properties))
        [message] = await take(client, 1)
        with TRACER.start_as_current_span("handle", context=context_of(message)) as handling:
            assert handling.get_span_context().trace_id == span.get_span_context().trace_id


@simulated
async def test_a_message_keeps_a_context_of_its_own_and_without_a_span_there_is_none() -> None:
    async with connected(trace=opentelemetry_context) as (client, peer):
        with TRACER.start_as_current_span("publish"):
            own = Properties(user_properties=[("traceparent", "mine")])
            await client.publish_batch([Outgoing("a", b"", properties=own)])
        assert trace.get_current_span() is trace.INVALID_SPAN
        await client.publish("a", b"")
        [first, second] = await peer.receive_all()
        assert first.properties == own and second.properties == {}


@simulated
async def test_mqtt_3_1_1_has_no_place_for_it() -> None:
    async with connected(version=4, trace=lambda: {"traceparent": "x"}) as (client, peer):
        await client.publish("a", b"")
        assert (await peer.receive()).properties == {}
