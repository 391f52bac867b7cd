"""A headless Chromium with one page, driven through a pipe. https://chromedevtools.github.io/devtools-protocol/

It reads commands from descriptor 3 and answers on 4, each a JSON text with a NUL behind it. Knows no MQTT."""

import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SECONDS_MAX = 30.0
# chromium-headless-shell is the smallest: about 300 MB installed.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--remote-debugging-pipe", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-proxy-server",
)  # fmt: skip
# Descriptors 3 and 4 may be anything in this process: the one that becomes the browser puts them there.
LAUNCH = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
)


def found() -> str | None:
    """The path of a browser that is installed."""
    return next((path for name in NAMES if (path := shutil.which(name)) is not None), None)


class Chromium:
    def __init__(self, path: str, folder: Path, *flags: str) -> None:
        """folder: of its own"""
        to_browser, self._commands = pipe()
        self._answers, from_browser = pipe()
        command = [sys.executable, "-c", LAUNCH, str(to_browser), str(from_browser), path, *FLAGS]
        self._process = subprocess.Popen(
            [*command, f"--user-data-dir={folder}", *flags, "about:blank"],
            pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        self._heard = bytearray()
        self._number = 0
        page = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._page = self._ask("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        self._ask("Page.enable")

    _page: str | None = None

    def open(self, url: str) -> None:
        """Go to a page, and come back once it is there."""
        fault = self._ask("Page.navigate", url=url).get("errorText")
        assert not fault, f"{url}: {fault}"
        self.until("document.readyState == 'complete'")

    def run(self, script: str) -> Any:
        """The value of an expression on the page; of a promise, what it comes to."""
        found = self._ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, script: str) -> Any:
        """Wait, on the page, until an expression is true; returns it."""
        wait = (
            "new Promise((resolve, reject) => { const began = Date.now(); const look = () => {"
            f" const is = {script}; if (is) resolve(is);"
            f" else if (Date.now() - began > {SECONDS_MAX * 500}) reject(new Error('it never came'));"
            " else setTimeout(look, 10); }; look(); })"
        )
        return self.run(wait)

    def end(self) -> None:
        os.close(self._commands)
        self._process.terminate()
        try:
            self._process.wait(SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._answers)

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        command = {"id": self._number, "method": method, "params": params}
        if self._page is not None:
            command["sessionId"] = self._page
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        while (told := self._hear()).get("id") != self._number:
            self._happened(told["method"], told["params"])
        assert "error" not in told, (method, told["error"])
        result = told["result"]
        assert isinstance(result, dict)
        return result

    def _happened(self, event: str, params: dict[str, Any]) -> None:
        """An event of the page, heard while an answer is waited for; only those of domains that were enabled."""

    def _hear(self) -> dict[str, Any]:
        until = time.monotonic() + SECONDS_MAX
        while (end := self._heard.find(b"\0")) < 0:
            ready, _, _ = select.select([self._answers], [], [], max(0.0, until - time.monotonic()))
            assert ready, "the browser says nothing"
            some = os.read(self._answers, 1 << 16)
            assert some, f"the browser has ended with {self._process.wait(SECONDS_MAX)}"
            self._heard += some
        told = json.loads(self._heard[:end])
        del self._heard[: end + 1]
        assert isinstance(told, dict)
        return told


def pipe() -> tuple[int, int]:
    """A pipe whose descriptors are above those that a browser wants."""
    low = os.pipe()
    high = tuple(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in low)
    for fd in low:
        os.close(fd)
    return high[0], high[1]
