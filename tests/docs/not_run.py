"""Blocks of the documents that tests/docs does not run: each with the reason, or with the test that runs it."""

from typing import NamedTuple


class Elsewhere(NamedTuple):
    """test: the file that runs the page's blocks"""

    test: str


MACHINES = "three machines; tests/cli/cluster/test_docs_cluster.py checks settings and orders"
DOCKER = "needs a container engine or Kubernetes; tests/packaging checks the files"
PEERS = "measures for minutes, beside other brokers; tests/bench runs each part"
SELF = "runs the test suite, of which this is a part"
LONG = "runs for minutes to hours; tests/faults and tests/simulation run short forms"
VENV = "makes an environment; tests/packaging/test_wheel.py installs a wheel into one, as a long test"
DEBIAN = "builds a package; tests/packaging/test_debian.py does and installs it, as a long test"
SYSTEMD = "needs systemd; tests/packaging/test_service.py runs the unit by a stand-in"
SPARK_CLUSTER = "a cluster of Spark; tests/spark/runtime/test_standalone.py makes one, as a long test"
DESK = (
    "for a desk with a browser; tests/interop/test_browser.py opens the page, tests/spark runs the jobs, "
    "tests/docs/test_examples.py the programs, as long tests"
)
NETWORK = "asks package registries or the network"

# (page, beginning of the block's first line; empty: every block of the page, reason)
NOT_RUN: list[tuple[str, str, str | Elsewhere]] = [
    ("README.md", "./run", Elsewhere("tests/docs/test_examples.py")),
    ("CONTRIBUTING.md", "", SELF),
    ("bench/README.md", "", PEERS),
    ("docs/guides/cluster.md", "", MACHINES),
    ("docs/explanation/durability.md", "", LONG),
    ("docs/guides/run-as-a-service.md", "systemctl", SYSTEMD),
    ("docs/guides/reach-a-cluster.md", "import ", Elsewhere("tests/interop/test_several_addresses.py")),
    ("docs/guides/three-nodes.md", "", MACHINES),
    ("docs/guides/lake.md", "import ", Elsewhere("tests/lake/test_docs.py")),
    ("docs/guides/lake.md", "gaps = ", Elsewhere("tests/lake/test_docs.py")),
    (
        "docs/guides/mirrors.md",
        "rumqd mirror",
        "two sites of two machines; docs/guides/mirror-brokers.md is run",
    ),
    ("docs/guides/queues.md", "python examples/news.py", Elsewhere("tests/page/test_news_sites.py")),
    ("docs/guides/operating.md", "install -m 644", SYSTEMD),
    ("docs/tutorial/operators-tour.md", "python3 -m venv", VENV),
    ("docs/guides/packages.md", "packaging/debian/build", DEBIAN),
    ("docs/guides/packages.md", "python3 -m venv", VENV),
    ("docs/guides/packages.md", "docker", DOCKER),
    ("docs/guides/security.md", "pip install pip-audit", NETWORK),
    ("docs/guides/security.md", "python -m tests.fuzz", LONG),
    ("docs/guides/spark.md", "", Elsewhere("tests/spark/test_docs.py")),
    ("docs/guides/spark-cluster.md", "import ", SPARK_CLUSTER),
    ("docs/guides/spark-cluster.md", "spark = ", SPARK_CLUSTER),
    ("docs/guides/spark-cluster.md", "python3 -m venv", VENV),
    ("docs/guides/spark-cluster.md", "docker", DOCKER),
    ("docs/tutorial/tutorial.md", "python3 -m venv", VENV),
    ("examples/README.md", "", DESK),
]
