"""Whether an installed rumq serves: `python installed.py [RUMQD]`. Knows nothing but the command, rumqd.

Prints one line of JSON, {"kernels", "seconds"}: seconds from starting the broker to the first message at a subscriber.
Exit status 1 if the kernels are not compiled, or no message came."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

SECONDS_MAX = 60


def first_message(rumqd: Sequence[str]) -> dict[str, object]:
    """raises: subprocess.SubprocessError, ValueError"""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as data:
        command = [*rumqd, "run", "--host", "127.0.0.1", "--port", "0", "--data", f"{data}/log"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as broker:
            try:
                assert broker.stderr is not None
                events = {}
                while "broker.ready" not in events:
                    event = json.loads(broker.stderr.readline())
                    events[event["event"]] = event
                port = str(events["broker.ready"]["port"])
                where = ["-h", "127.0.0.1", "-p", port]
                subprocess.run(
                    [*rumqd, "pub", *where, "first", "-m", "21.5", "-q", "1"], check=True, timeout=SECONDS_MAX
                )
                said = subprocess.run(
                    [*rumqd, "sub", *where, "first", "--from", "earliest", "-C", "1"],
                    check=True, timeout=SECONDS_MAX, stdout=subprocess.PIPE, text=True,
                ).stdout  # fmt: skip
                if said.strip() != "21.5":
                    raise ValueError(f"expected 21.5, got {said!r}")
            finally:
                broker.terminate()
    return {"kernels": events["broker.starting"]["kernels"], "seconds": round(time.monotonic() - started, 2)}


if __name__ == "__main__":
    found = first_message(sys.argv[1:] or ["rumqd"])
    print(json.dumps(found))
    sys.exit(found["kernels"] != "compiled")
