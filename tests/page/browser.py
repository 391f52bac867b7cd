"""A browser used as a person does: keys, clicks on what is seen, screenshots; what goes wrong on the page is kept.

An element is found by a CSS selector and, if given, a text in it; it is waited for until it is there and has a size."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

from tests.interop.chromium import Chromium

# Of Input.dispatchKeyEvent: key -> (code, the number of Windows)
KEYS = {
    "Enter": ("Enter", 13), "Escape": ("Escape", 27), "Tab": ("Tab", 9), "Backspace": ("Backspace", 8),
    "ArrowDown": ("ArrowDown", 40), "ArrowUp": ("ArrowUp", 38), "ArrowLeft": ("ArrowLeft", 37),
    "ArrowRight": ("ArrowRight", 39), "Home": ("Home", 36), "End": ("End", 35), " ": ("Space", 32),
    "PageDown": ("PageDown", 34), "PageUp": ("PageUp", 33),
}  # fmt: skip
FIND = """
window.testFind = (selector, text) => [...document.querySelectorAll(selector)].find((element) => {
  const box = element.getBoundingClientRect();
  return box.width > 0 && box.height > 0 && (text === null || element.textContent.includes(text));
})
"""
# What a browser logs as an error and is an answer, which the page shows: no such client, a broker that is busy.
ANSWERS = ((404, "/api/v1/client?"), (503, "/readyz"))
# An open dialog and toasts first: a fault of an action is in its dialog.
SHOWN = """
[...document.querySelectorAll('dialog, .toast'), document.querySelector('main') ?? document.body]
  .map((element) => element.innerText).join(' | ').slice(0, 2000)
"""


class Browser(Chromium):
    """errors: of scripts, of the console and of the content security policy, each a sentence

    requested: every address that the page has asked for"""

    def __init__(self, path: str, folder: Path, *flags: str) -> None:
        self.errors: list[str] = []
        self.requested: list[str] = []
        super().__init__(path, folder, *flags)
        for domain in ("Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")
        self._ask("Page.addScriptToEvaluateOnNewDocument", source=FIND)

    def _happened(self, event: str, params: dict[str, Any]) -> None:
        if event == "Runtime.exceptionThrown":
            detail = params["exceptionDetails"]
            self.errors.append(f"{detail['text']} {detail.get('exception', {}).get('description', '')}")
        elif event == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(" ".join(f"{part.get('value', part)}" for part in params["args"]))
        elif event == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            entry = params["entry"]
            if any(f"status of {status}" in entry["text"] and path in entry.get("url", "") for status, path in ANSWERS):
                return
            self.errors.append(f"{entry['source']}: {entry['text']} {entry.get('url', '')}")
        elif event == "Network.requestWillBeSent":
            self.requested.append(params["request"]["url"])

    # What a person sees

    def window(self, width: int, height: int, *, theme: str = "light") -> None:
        """theme: light or dark, as the system of the person says"""
        self._ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        features = [
            {"name": "prefers-color-scheme", "value": theme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self._ask("Emulation.setEmulatedMedia", features=features)

    def sees(self, selector: str, text: str | None = None) -> None:
        """Wait until there is such an element."""
        self.until(f"Boolean({find(selector, text)})")

    def sees_no(self, selector: str, text: str | None = None) -> None:
        self.until(f"!{find(selector, text)}")

    def until(self, script: str) -> Any:
        """Wait, on the page, until an expression is true. raises: AssertionError with what the page shows instead"""
        try:
            return super().until(script)
        except AssertionError:
            shown = self.run(SHOWN)
            raise AssertionError(f"never: {script}; errors: {self.errors}; the page: {shown!r}") from None

    def text(self, selector: str, containing: str | None = None) -> str:
        self.sees(selector, containing)
        return str(self.run(f"{find(selector, containing)}.innerText"))

    def texts(self, selector: str) -> list[str]:
        found = self.run(f"[...document.querySelectorAll({json.dumps(selector)})].map((e) => e.innerText)")
        assert isinstance(found, list)
        return found

    def screenshot(self, path: Path, colors: int = 256) -> None:
        """Write a PNG of what the window shows, with few colors, so that it is small."""
        from PIL import Image

        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
        data = base64.b64decode(self._ask("Page.captureScreenshot", format="png")["data"])
        image = Image.open(io.BytesIO(data)).convert("RGB")
        image.quantize(colors, dither=Image.Dither.NONE).save(path, optimize=True)

    # What a person does

    def click(self, selector: str, text: str | None = None) -> None:
        """A click of the mouse on the middle of it."""
        self.sees(selector, text)
        place = self.run(
            f"(() => {{ const element = {find(selector, text)}; element.scrollIntoView({{block: 'center'}});"
            " const box = element.getBoundingClientRect();"
            " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self._ask("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)

    def fill(self, selector: str, text: str) -> None:
        """Click into a field and type over what is in it."""
        self.click(selector)
        self.run("document.activeElement.select && document.activeElement.select()")
        if text:
            self.type(text)
        else:
            self.press("Backspace")

    def choose(self, selector: str, value: str) -> None:
        """An entry of a <select>: its list is drawn by the system, outside of the page."""
        self.sees(selector)
        self.run(
            f"(() => {{ const list = {find(selector, None)}; list.value = {json.dumps(value)};"
            " list.dispatchEvent(new Event('input', {bubbles: true}));"
            " list.dispatchEvent(new Event('change', {bubbles: true})); })()"
        )

    def type(self, text: str) -> None:
        self._ask("Input.insertText", text=text)

    def press(self, key: str, *, modifiers: int = 0) -> None:
        """key: of KEYS, or a character; modifiers: 1 Alt, 2 Ctrl, 4 Meta, 8 Shift"""
        code, number = KEYS.get(key, (f"Key{key.upper()}", ord(key.upper()) if len(key) == 1 else 0))
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        about = {"key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": modifiers}
        self._ask("Input.dispatchKeyEvent", type="keyDown", **about, **({"text": text} if text else {}))
        self._ask("Input.dispatchKeyEvent", type="keyUp", **about)

    def offline(self, is_away: bool) -> None:
        """Whether nothing that the page asks for is answered."""
        self._ask(
            "Network.emulateNetworkConditions",
            offline=is_away, latency=0, downloadThroughput=-1, uploadThroughput=-1,
        )  # fmt: skip

    def went_wrong(self) -> list[str]:
        """The errors so far, which are forgotten; also those that are still on their way."""
        self.run("new Promise((done) => setTimeout(() => done(true), 0))")
        found, self.errors = self.errors, []
        return found


def find(selector: str, text: str | None) -> str:
    return f"window.testFind({json.dumps(selector)}, {json.dumps(text)})"
