"""A real broker for clients that nobody here wrote.

RUMQ_TEST_ADDRESS=host:port takes one that runs; RUMQ_TEST_BROKER=mosquitto Debian's broker, which shows whether a
test or the broker is wrong: what only rumq has is skipped there."""

import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker_process import Address, Rumqd
from tests.conformance.broker import running

BROKER = os.environ.get("RUMQ_TEST_BROKER", "rumqd")
# A broker that runs already has the topics of former runs in its log.
RUN = uuid.uuid4().hex[:8]
HERE = Path(__file__).parent
NO_NETWORK = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ENETUNREACH", "ENOTCACHED")
# Where Debian's mosquitto 2.0.11 does not do what the standard says.
DEPARTURES = {
    "test_a_message_past_its_expiry_is_not_delivered": "counts in whole seconds",
    "test_a_client_that_is_taken_over_is_told": "closes without a word",
    "test_who_is_taken_over_is_told": "closes without a word",
    "test_messages_arrive_once_and_in_order": "stops after the 20 that it has in flight",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        name = item.nodeid.rpartition("::")[2].partition("[")[0]
        if BROKER == "mosquitto" and "tests/interop/" in item.nodeid and name in DEPARTURES:
            item.add_marker(pytest.mark.xfail(reason=f"mosquitto {DEPARTURES[name]}", run=False))


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """Where the broker is that all tests share."""
    folder = tmp_path_factory.mktemp("broker")
    if address := os.environ.get("RUMQ_TEST_ADDRESS"):
        host, _, port = address.rpartition(":")
        yield Address(host, int(port))
    elif BROKER == "mosquitto":
        with running(BROKER, folder) as (found, _):
            yield Address(*found)
    else:
        rumqd = Rumqd(folder / "data")
        try:
            rumqd.start()
            yield rumqd.address
            crashes = rumqd.named("client.crashed")
            assert rumqd.stop() == 0 and not crashes, crashes
        finally:
            rumqd.end()


@pytest.fixture
def log_broker(broker: Address) -> Address:
    """The same, for what only a broker with a log can do."""
    if BROKER != "rumqd":
        pytest.skip(f"{BROKER} has no log")
    return broker


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Rumqd]:
    """A broker of the test's own, not started yet."""
    if BROKER != "rumqd":
        pytest.skip("for rumqd alone")
    rumqd = Rumqd(tmp_path / "data")
    yield rumqd
    rumqd.end()


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic that no other test uses, and no other run."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    return f"interop/{RUN}/{request.module.__name__.rpartition('.')[2]}/{name}"


@pytest.fixture(scope="session")
def installed() -> None:
    """MQTT.js is in node_modules, in the versions that the lock file names."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("Node.js and npm are not installed")
    lock, done = HERE / "package-lock.json", HERE / "node_modules" / ".package-lock.json"
    if done.exists() and done.stat().st_mtime >= lock.stat().st_mtime:
        return
    command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    try:
        ended = subprocess.run(command, cwd=HERE, check=False, timeout=250, capture_output=True, text=True)
    except subprocess.TimeoutExpired:
        pytest.skip("npm reaches no registry in time, so MQTT.js cannot be installed")
    if ended.returncode and any(name in ended.stderr for name in NO_NETWORK):
        pytest.skip("npm reaches no registry, so MQTT.js cannot be installed")
    assert ended.returncode == 0, ended.stderr
