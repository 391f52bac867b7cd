"""The program's side of the template: one for a program, started with its first broker. decision 63."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

from rumq.embedded.broker_link import BrokerLink, open_pair

END_SECONDS_MAX = 5.0
ROOT = str(Path(__file__).parents[2])
# Without `site`, whose work the program has done: it gives its path. A collection during imports finds nothing.
PROGRAM = (
    "import gc, sys; gc.disable(); control, program, *sys.path = sys.argv[1:]; "
    "from rumq.embedded.template_process import main; main(int(control), int(program))"
)


class Template:
    """A process that forks brokers, and the socket that new links are sent over."""

    def __init__(self) -> None:
        """raises: OSError"""
        self.program = os.getpid()
        self._control, theirs = socket.socketpair()
        with theirs:
            path = [ROOT, *(os.path.abspath(each) for each in sys.path)]
            command = [sys.executable, "-I", "-S", "-c", PROGRAM, str(theirs.fileno()), str(self.program), *path]
            environment = {name: value for name, value in os.environ.items() if not name.startswith("RUMQ_")}
            self._process = subprocess.Popen(
                command, cwd="/", env=environment, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is the program's, which ends its brokers
            )  # fmt: skip

    def open_link(self) -> BrokerLink:
        """The link of a new broker. raises: OSError if the template has ended"""
        link, theirs = open_pair()
        try:
            with theirs:
                socket.send_fds(self._control, [b"b"], [theirs.fileno()])
        except OSError:
            link.close()
            raise
        return link

    @property
    def is_running(self) -> bool:
        return self.program == os.getpid() and self._process.poll() is None

    def close(self) -> None:
        """End it, with the brokers that it still has. In a forked copy of the program only forget it."""
        if self.program == os.getpid():
            with contextlib.suppress(OSError):
                self._control.shutdown(socket.SHUT_RDWR)
        self._control.close()
        if self.program == os.getpid():
            try:
                self._process.wait(END_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


_lock = threading.Lock()
_template: Template | None = None


def open_link() -> BrokerLink:
    """The link of a new broker, from the template of this program, which is started if there is none.

    raises: OSError"""
    global _template
    with _lock:
        if _template is not None and _template.is_running:
            with contextlib.suppress(OSError):  # it ends now, idle
                return _template.open_link()
        if _template is not None:
            _template.close()
        _template = Template()
        return _template.open_link()


@atexit.register
def close() -> None:
    """End the template of this program; the next broker starts another one."""
    global _template
    with _lock:
        if _template is not None:
            _template.close()
            _template = None


def warm() -> None:
    """Start it, if it does not run: the first broker need not wait for its imports. raises: OSError"""
    open_link().close()


def tidy(directory: str) -> None:
    """Remove the directory of a broker whose template could not: it was killed."""
    if directory and os.path.exists(directory):
        shutil.rmtree(directory, ignore_errors=True)
