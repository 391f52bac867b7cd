"""One broker for a module: its tests have queues of their own."""

from collections.abc import Iterator

import pytest

from tests.client.queues.queue_broker import QueueBroker


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueueBroker]:
    made = QueueBroker(tmp_path_factory.mktemp("queues"))
    yield made
    assert not made.broker.named("gateway.failed", "client.crashed")
    made.end()
