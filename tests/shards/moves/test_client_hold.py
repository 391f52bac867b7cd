"""Clients go on at the next leader as if nothing had happened: MQTT 5.0, 4.3 and 4.4, on one connection."""

from rumq.session.protocol.connected import Connected
from rumq.shards.moves.client_hold import MOVING_SECONDS
from tests.conformance import wire
from tests.conformance.wire import Kind, Prop, Will
from tests.shards.moves.world import Client, World


def connected(world: World, name: str, **more: object) -> Client:
    client = world.client(wire.connect(name, **more))  # type: ignore[arg-type]
    assert client.packet().kind is Kind.CONNACK
    return client


def subscribed(world: World, name: str, qos: int, **more: object) -> Client:
    client = connected(world, name, **more)
    client.write(wire.subscribe(1, [("t/#", qos)]))
    assert client.packet().kind is Kind.SUBACK
    return client


def test_what_was_in_flight_to_a_client_goes_on_and_nothing_comes_again(world: World) -> None:
    """The session is a clean one: the journal had nothing of it before."""
    subscriber, publisher = subscribed(world, "s", 2), connected(world, "p")
    publisher.write(wire.publish("t/1", b"a", qos=2, packet_id=1) + wire.ack(Kind.PUBREL, 1))
    assert [publisher.packet().kind for _ in range(2)] == [Kind.PUBREC, Kind.PUBCOMP]
    first = subscriber.packet()
    assert (first.kind, first.payload) == (Kind.PUBLISH, b"a")
    world.move()
    assert subscriber.maybe_packet() is None
    subscriber.write(wire.ack(Kind.PUBREC, first.packet_id))
    released = subscriber.packet()
    assert (released.kind, released.packet_id, released.code or 0) == (Kind.PUBREL, first.packet_id, 0)
    subscriber.write(wire.ack(Kind.PUBCOMP, first.packet_id))
    publisher.write(wire.publish("t/1", b"b", qos=1, packet_id=2))
    assert publisher.packet().kind is Kind.PUBACK
    second = subscriber.packet()
    assert (second.payload, second.flags & 8) == (b"b", 0) and second.packet_id != first.packet_id
    assert subscriber.maybe_packet() is None


def test_a_qos_2_message_of_a_client_is_taken_once_across_a_move(world: World) -> None:
    subscriber, publisher = subscribed(world, "s", 0), connected(world, "p")
    publisher.write(wire.publish("t/1", b"a", qos=2, packet_id=7))
    assert publisher.packet().kind is Kind.PUBREC and subscriber.packet().payload == b"a"
    world.move()
    publisher.write(wire.publish("t/1", b"a", qos=2, packet_id=7, dup=True))
    assert publisher.packet().kind is Kind.PUBREC
    publisher.write(wire.ack(Kind.PUBREL, 7))
    done = publisher.packet()
    assert (done.kind, done.code or 0) == (Kind.PUBCOMP, 0)
    assert subscriber.maybe_packet() is None


def test_topic_aliases_of_a_client_and_half_a_packet_go_along(world: World) -> None:
    subscriber, publisher = subscribed(world, "s", 1), connected(world, "p")
    publisher.write(wire.publish("t/1", b"a", properties=[(Prop.TOPIC_ALIAS, 3)]))
    assert subscriber.packet().payload == b"a"
    whole = wire.publish("", b"b", qos=1, packet_id=9, properties=[(Prop.TOPIC_ALIAS, 3)])
    publisher.write(whole[:5])
    world.turn()
    world.move()
    publisher.write(whole[5:])
    assert publisher.packet().kind is Kind.PUBACK
    got = subscriber.packet()
    assert (got.topic, got.payload) == ("t/1", b"b")


def test_what_the_socket_did_not_take_is_sent_by_the_next_leader(world: World) -> None:
    subscriber, publisher = subscribed(world, "s", 0), connected(world, "p")
    for number in range(8):
        publisher.write(wire.publish("t/1", bytes([number]) * 100_000, qos=1, packet_id=number + 1))
        assert publisher.packet().kind is Kind.PUBACK
    world.move()
    assert [subscriber.packet().payload[0] for _ in range(8)] == list(range(8))
    assert subscriber.maybe_packet() is None


def test_no_will_is_published_by_a_move_and_a_client_that_is_lost_later_leaves_its_own(world: World) -> None:
    subscriber = subscribed(world, "s", 1)
    device = connected(world, "d", will=Will("t/will", b"gone", qos=1))
    world.move()
    assert subscriber.maybe_packet() is None
    device.sock.close()
    world.clients.remove(device)
    assert subscriber.packet().payload == b"gone"


def test_a_connection_that_never_comes_is_taken_for_lost_after_a_while(world: World) -> None:
    subscriber = subscribed(world, "s", 1)
    device = connected(world, "d", will=Will("t/will", b"gone", qos=1))
    world.hold()
    assert world.leave() == 2
    ours, theirs = world.on_the_way
    world.on_the_way = [ours]
    world.arrive()
    world.on_the_way = [theirs]
    world.now += MOVING_SECONDS - 1
    assert subscriber.maybe_packet() is None
    world.now += 2
    assert subscriber.packet().payload == b"gone"
    world.arrive()
    last = device.packet()
    assert (last.kind, last.code) == (Kind.DISCONNECT, 0x8E)


def test_who_connects_again_meanwhile_has_the_session(world: World) -> None:
    first = connected(world, "d", clean=False, properties=[(Prop.SESSION_EXPIRY, 100)])
    world.hold()
    assert world.leave() == 1
    again = connected(world, "d", clean=False, properties=[(Prop.SESSION_EXPIRY, 100)])
    world.arrive()
    last = first.packet()
    assert (last.kind, last.code) == (Kind.DISCONNECT, 0x8E)
    again.write(wire.frame(0xC0))
    assert again.packet().kind is Kind.PINGRESP


def test_who_connected_again_and_has_left_has_the_session_too(world: World) -> None:
    """What was in flight on the connection that comes late is not what is in flight now."""
    first = connected(world, "d", clean=False, properties=[(Prop.SESSION_EXPIRY, 100)])
    world.hold()
    assert world.leave() == 1
    again = connected(world, "d", clean=False, properties=[(Prop.SESSION_EXPIRY, 100)])
    again.write(wire.disconnect())
    assert again.maybe_packet() is None
    world.arrive()
    last = first.packet()
    assert (last.kind, last.code) == (Kind.DISCONNECT, 0x8E)


def test_if_nobody_takes_office_clients_go_on_and_have_noticed_nothing(world: World) -> None:
    subscriber, publisher = subscribed(world, "s", 2), connected(world, "p", will=Will("t/will"))
    world.hold()
    publisher.write(wire.publish("t/1", b"a", qos=1, packet_id=1))
    assert publisher.maybe_packet() is None
    world.process.hold.release()
    assert publisher.packet().kind is Kind.PUBACK and subscriber.packet().payload == b"a"
    sessions = world.process.parts.clients.registry.sessions
    session = next(each for each in sessions.values() if each.client_id == "s")
    assert (session.durable, session.number) == (False, 0)
    world.move()  # and later one does
    publisher.write(wire.publish("t/1", b"b", qos=1, packet_id=2))
    assert publisher.packet().kind is Kind.PUBACK and subscriber.packet().payload == b"b"


def test_a_client_that_waits_for_an_answer_is_not_noted(world: World) -> None:
    client = connected(world, "c")
    [link] = [each.link for each in world.process.parts.clients.broker.registry.sessions.values()]
    assert isinstance(link, Connected)
    link.paused = True  # a SUBSCRIBE waits for another shard
    world.process.hold.hold()
    assert not world.process.hold.is_settled()
    world.process.hold.note()
    assert world.leave() == 0
    assert client.maybe_packet() is None


def test_a_client_that_is_to_be_sent_nothing_is_not_moved_and_holds_up_nobody(world: World) -> None:
    """At the next leader nothing would say so, and what waits for it here is in memory: it has to ask again."""
    lasting = [(Prop.SESSION_EXPIRY, 100)]
    subscribed(world, "s", 1, clean=False, properties=[*lasting, (Prop.USER_PROPERTY, ("rumq-hold", ""))])
    publisher = connected(world, "p")
    world.hold()
    assert world.leave() == 1, "the publisher"
    world.arrive()
    publisher.write(wire.publish("t/1", b"a", qos=1, packet_id=1))
    assert publisher.packet().kind is Kind.PUBACK
    again = connected(world, "s", clean=False, properties=lasting)
    assert again.packet().payload == b"a"


def test_keep_alive_does_not_count_while_a_client_is_held(world: World) -> None:
    client = connected(world, "c", keep_alive=1)
    world.hold()
    world.now += 5
    world.turn()
    world.process.hold.release()
    client.write(wire.frame(0xC0))
    assert client.packet().kind is Kind.PINGRESP


def test_moves_follow_one_another(world: World) -> None:
    subscriber, publisher = subscribed(world, "s", 2), connected(world, "p")
    for number in range(1, 6):
        world.move()
        publisher.write(wire.publish("t/1", bytes([number]), qos=1, packet_id=number))
        assert publisher.packet().kind is Kind.PUBACK
        got = subscriber.packet()
        assert got.payload == bytes([number])
        subscriber.write(wire.ack(Kind.PUBREC, got.packet_id))
        assert subscriber.packet().kind is Kind.PUBREL
        subscriber.write(wire.ack(Kind.PUBCOMP, got.packet_id))
