"""A Spark cluster of this machine: a standalone master and workers, each a process on loopback, on free ports.

Its processes see no Python environment of this one: what executors import, the session has brought to them."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Empty, SimpleQueue

import pytest

SECONDS_MAX = 120.0
SMALL_JVM = ("-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
DRIVER_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def spark_home() -> str:
    """Where pip has put Spark; skips without it or Java."""
    pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed (pip install 'rumq[spark]')")
    if shutil.which("java") is None:
        pytest.skip("Java is not installed (openjdk-17-jre-headless)")
    return str(Path(pyspark.__file__).parent)


class Jvm:
    """A process of Spark, started. Ends with `end`."""

    def __init__(self, main: str, *arguments: str, folder: Path) -> None:
        home = spark_home()
        (core,) = Path(home, "jars").glob("spark-core_*.jar")
        environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin", "SPARK_HOME": home, "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_SCALA_VERSION": core.name.split("_")[1].split("-")[0],  # as the script spark-class sets it
        }  # fmt: skip
        environment |= {name: os.environ[name] for name in ("JAVA_HOME",) if name in os.environ}
        self.process = subprocess.Popen(
            ["java", *SMALL_JVM, "-cp", f"{home}/jars/*", f"org.apache.spark.deploy.{main}", "--host", "127.0.0.1",
             "--port", "0", "--webui-port", "0", *arguments],
            cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._lines: SimpleQueue[str] = SimpleQueue()
        self.said: list[str] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._lines.put(line)
        self._lines.put("")

    def until(self, pattern: str) -> str:
        """What the first group of a pattern matches in a line, waited for."""
        while True:
            try:
                line = self._lines.get(timeout=SECONDS_MAX)
            except Empty:
                line = ""
            assert line, f"no {pattern}: {''.join(self.said[-20:])}"
            self.said.append(line)
            if found := re.search(pattern, line):
                return found[1]

    def end(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Standalone:
    """A master and workers. master: its URL; folder: of the workers' files"""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._jvms: list[Jvm] = []
        self.master = ""

    def start(self, workers: int, cores: int) -> None:
        self._jvms.append(Jvm("master.Master", folder=self._folder))
        self.master = self._jvms[0].until(r"Starting Spark master at (spark://\S+)")
        for number in range(workers):
            work = self._folder / f"worker{number}"
            more = ("--cores", str(cores), "--memory", "1g", "--work-dir", str(work), self.master)
            self._jvms.append(Jvm("worker.Worker", *more, folder=self._folder))
            self._jvms[-1].until(r"(Successfully registered with master)")

    def executors(self) -> list[int]:
        """Pids of the executors that live."""
        return [
            pid
            for worker in self._jvms[1:]
            for pid in children(worker.process.pid)
            if "CoarseGrainedExecutorBackend" in command_of(pid)
        ]

    def stop(self) -> None:
        for jvm in reversed(self._jvms):
            jvm.end()


def children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(word) for word in (task / "children").read_text().split()]
    return found


def command_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    return ""


class Driver:
    """A program of ours that uses the cluster, in a process group of its own: the JVM that it starts dies with it."""

    def __init__(self, program: str, *arguments: str, **environment: str) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "RUMQ_"))}
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True, env={**kept, "SPARK_HOME": spark_home(), **environment},
        )  # fmt: skip
        self._errors: list[str] = []
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def _listen(self) -> None:
        assert self.process.stderr is not None
        self._errors.extend(self.process.stderr)

    def errors(self) -> str:
        self._reader.join(5)
        return "".join(self._errors)

    def lines(self) -> Iterator[str]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            yield line.strip()

    def next_line(self) -> str:
        """raises: AssertionError with what it said last if it has ended"""
        line = next(self.lines(), None)
        assert line is not None, self.errors()[-4000:]
        return line

    def result(self) -> str:
        """Its last line, once it has ended well."""
        said = list(self.lines())
        assert self.process.wait(60) == 0, self.errors()[-4000:]
        return said[-1]

    def kill(self) -> None:
        """Python and JVM at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
