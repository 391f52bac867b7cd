"""A standby looks after what the edge hands to it by mistake, while it follows."""

import socket
from pathlib import Path

from commitlog import RealFiles
from commitlog.replica.replica_state import load_state
from rumq.cluster.node.log_copies import NodeLogCopies
from rumq.cluster.node.standby_process import StandbyContext, StandbyProcess


def test_a_standby_gives_back_again_and_again(tmp_path: Path) -> None:
    data = str(tmp_path)
    (tmp_path / "_cluster").mkdir()
    calls: list[None] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        standing = StandbyContext(
            "n1#aaaaaaaa", 0, f"{data}/agent.sock", listener, give_back=lambda: calls.append(None)
        )
        state = load_state(RealFiles(), data, 0, "aaaaaaaa", has_log=False)
        process = StandbyProcess(standing, NodeLogCopies(RealFiles(), data, []), state, lambda name, **_: None)
        assert process.run(lambda: len(calls) >= 2) is None
