"""What serves clients asks the parts of its shard."""

from tests.faults.shard import Shard


def test_the_ports_are_those_of_the_shard_s_parts(shard: Shard) -> None:
    clients, writing = shard.parts.clients, shard.parts.writing
    assert clients.broker.logins is clients.logins
    assert clients.broker.publishing.topics is writing.topics.known
    assert clients.broker.publishing.undecided is clients.undecided
    assert clients.broker.delivery.send_again == shard.parts.delivery.redelivery.go_on
