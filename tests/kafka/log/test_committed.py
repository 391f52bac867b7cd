"""Shards are asked for what is committed: those that own what is asked for."""

import json
from pathlib import Path

import trio

from rumq.kafka.log.committed import CommittedQuestions


def row(stream: str, partition: int, lsn: int) -> dict[str, object]:
    return {"stream": stream, "partition": partition, "committed_lsn": lsn, "durability": "disk", "more": 1}


def test_the_owners_are_learned_and_asked(tmp_path: Path) -> None:
    answers = {"ask.sock": [row("main", 0, 7), row("main", 2, 9)], "ask-1.sock": [row("main", 1, 8)]}
    asked: list[str] = []

    async def serve(name: str, task_status: trio.TaskStatus[None]) -> None:
        sock = trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_STREAM)
        await sock.bind(str(tmp_path / name))
        sock.listen()
        task_status.started()
        while True:
            peer, _ = await sock.accept()
            assert json.loads(await peer.recv(1000))["ask"] == "partitions"
            asked.append(name)
            await peer.send(json.dumps({"partitions": answers[name]}).encode() + b"\n")
            peer.close()

    async def run() -> None:
        questions = CommittedQuestions(str(tmp_path), 2)
        assert await questions.ask({"main/g1/p1"}) is None  # nobody answers
        async with trio.open_nursery() as nursery:
            for name in answers:
                await nursery.start(serve, name)
            assert await questions.ask({"main/g1/p1"}) == {"main/g1/p0": 7, "main/g1/p1": 8, "main/g1/p2": 9}
            assert asked == ["ask.sock", "ask-1.sock"]
            assert await questions.ask({"main/g1/p1"}) == {"main/g1/p1": 8}
            assert asked[2:] == ["ask-1.sock"]
            answers["ask-1.sock"] = []
            nursery.cancel_scope.cancel()

    trio.run(run)
