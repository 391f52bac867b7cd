"""What ends a job is one sentence, out of the traces that Spark makes of it."""

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (pip install 'rumq[spark]')")

from rumq.spark.jobs.runner import sentence

WORKER = """[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted SQLSTATE: XXKST
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "connection.py", line 91, in _open
rumq.errors.ConnectionLost: no connection: all attempts to connect to 127.0.0.1:1 failed
 SQLSTATE: 38000
\tat org.apache.spark.api.python.BasePythonRunner
"""


@pytest.mark.parametrize(
    ("trace", "expected"),
    [
        (WORKER, "no connection: all attempts to connect to 127.0.0.1:1 failed"),
        (
            "x\nrumq.spark.errors.DataLoss: rumq: records 1 to 2 are gone\n at y",
            "rumq: records 1 to 2 are gone",
        ),
        ("x\nrumq.errors.Refused: the broker refused PUBLISH: 0x87\n", "the broker refused PUBLISH: 0x87"),
        ("[UNRESOLVED] a column\nat line 1", "Spark: [UNRESOLVED] a column"),
        ("", "Spark: no reason"),
    ],
)
def test_the_sentence_of_whoever_failed_is_found(trace: str, expected: str) -> None:
    assert sentence(trace) == expected
