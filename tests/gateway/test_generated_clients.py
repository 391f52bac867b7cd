"""The routes of queues by clients that generators make from the OpenAPI description: in Python and for Node.js."""

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.conftest import Gateway, started
from tests.gateway.test_queues import ready
from tests.services.node_client import install, node

NODE = Path(__file__).parent / "node"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    made = ready(started(tmp_path_factory.mktemp("generated"), "queues.enabled=true"))
    yield made
    assert not made.broker.named("gateway.failed")
    made.broker.end()


class Generated:
    """What openapi-python-client makes of the description. Its calls are modules, named as operations are"""

    def __init__(self, gateway: Gateway, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        document, made = folder / "openapi.json", folder / "generated_rumq"
        document.write_bytes(gateway.ask("GET", "/api/v1/openapi.json").body)
        command = [Path(sys.executable).parent / "openapi-python-client", "generate", "--meta", "none"]
        (folder / "settings.yaml").write_text("post_hooks: []\n")
        command += ["--path", document, "--output-path", made, "--config", folder / "settings.yaml"]
        ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        self.warnings = ended.stdout.count("WARNING")
        self.said = ended.stdout
        monkeypatch.syspath_prepend(folder)
        self._client = importlib.import_module("generated_rumq").AuthenticatedClient(
            f"http://127.0.0.1:{gateway.port}", gateway.secrets["ops"]
        )

    def __call__(self, name: str, *path: str, **more: Any) -> Any:
        """The status and the answer, parsed by the generated code."""
        call = importlib.import_module(f"generated_rumq.api.default.{name}").sync_detailed
        answer = call(*path, client=self._client, **more)
        return answer.status_code, answer.parsed

    def model(self, name: str, **fields: Any) -> Any:
        return getattr(importlib.import_module("generated_rumq.models"), name)(**fields)


def test_the_routes_by_a_client_generated_in_python(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = Generated(gateway, tmp_path, monkeypatch)
    assert call.warnings == call.said.count("Unsupported content type application/msgpack"), call.said
    place = ("127.0.0.1", gateway.port)

    status, queue = call("create_queue", "Python")
    assert (status, queue.label, queue.host, queue.port) == (201, "python", *place)
    assert call("create_queue", "PYTHON")[0] == 200
    status, queue = call("queue", "Python")
    assert (status, queue.label, queue.host, queue.port) == (200, "python", *place)
    status, queues = call("queues")
    assert status == 200 and "python" in [each.label for each in queues.queues]
    status, channel = call("create_topic_channel", "python", "Sport")
    assert (status, channel.topic, channel.host, channel.port) == (201, "sport", *place)
    status, found = call("channel", channel.id)
    assert (status, found.label, found.host, found.port) == (200, "python", *place)
    assert [each.id for each in call("channels", queue="python")[1].channels] == [channel.id]
    assert call("queue_topics", "python")[1].topics == ["sport"]
    messages = [
        call.model("PushMessage", topic="sport", payload="1", headers=[["a", "b"]]),
        call.model("PushMessage", topic="art", payload="2"),
    ]
    status, pushed = call("push", "python", body=messages, ids=True)
    assert (status, pushed.accepted, pushed.ids) == (200, 2, ["1@sport", "1@art"])
    status, taken = call("take", channel.id, wait=20, consumer="python")
    (message,) = taken.messages
    assert (status, message.id, message.payload, message.headers) == (200, "1@sport", "1", [["a", "b"]])
    status, answered = call(
        "acknowledge", channel.id, body=call.model("Acknowledgements", consumer="python", acknowledge=[message.id])
    )
    assert (status, answered.done, answered.not_held) == (200, 1, [])
    assert call("delete_channel", channel.id)[0] == 200
    status, problem = call("channel", channel.id)
    assert (status, problem.status) == (404, 404)
    assert call("delete_queue", "python")[0] == 200
    status, problem = call("queue", "python")
    assert (status, problem.status) == (404, 404)


@pytest.mark.node
def test_the_routes_by_a_client_generated_for_node(gateway: Gateway) -> None:
    install(NODE)
    url, token = f"http://127.0.0.1:{gateway.port}", gateway.secrets["ops"]
    ended = node("routes.mjs", url, token, folder=NODE)
    assert ended.returncode == 0, ended.stderr
    seen = json.loads(ended.stdout)
    place = ["127.0.0.1", gateway.port]
    assert seen["create"] == [201, "node", *place] and seen["create again"] == [200, "node"]
    assert seen["describe"] == [200, "node", *place] and "node" in seen["labels"]
    assert seen["channel"] == [201, *place] and seen["describe channel"] == [200, "node", *place]
    assert seen["bad channel"][0] == 404
    assert (seen["push"], seen["ids"]) == ([200], ["1@sport", "1@art"])
    assert (seen["topics"], seen["channels"]) == (["art", "sport"], [True])
    assert (seen["take"], seen["messages"]) == ([200], ["1"])
    assert seen["answered"] == {"done": 1, "not_held": []}
    assert [seen[name][0] for name in ("delete channel", "deleted channel", "delete", "deleted")] == [
        200,
        404,
        200,
        404,
    ]
