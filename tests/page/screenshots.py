"""Pictures of the page for the documents: `python -m tests.page.screenshots [NAME ...]` writes docs/pictures/.

A broker with two shards, a plant that publishes, some consumers of which one is slow, and what an operator did.
`cluster`, which is only taken when named, has three nodes of which one has died. `top`, likewise, is
`rumqd top` of the same plant, and needs no browser."""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.gateway.conftest import Gateway, started
from tests.interop.chromium import NAMES, found
from tests.page import incident, queue_scene, scene
from tests.page.browser import Browser
from tests.page.cluster_scene import cluster
from tests.page.page import Page
from tests.page.terminal_picture import take_top

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
BYTES_MAX = 120 * 1024
WIDE, NARROW = 1280, 400
HEIGHT = 800
SECONDS = 120  # of life before the pictures, so that the plots have something to show


class Picture(NamedTuple):
    """place: of the view; ready: (selector, text) that is seen once it is complete; act: what a person does then"""

    place: str
    ready: tuple[str, str | None]
    act: Callable[[Browser], None] | None = None
    theme: str = "light"
    width: int = WIDE


def open_tree(browser: Browser) -> None:
    for level in ("plant/", "line-2/", "press-3/"):
        browser.click(".tree tr", level)
    browser.sees(".tree .value", "running")
    browser.sees(".tree .value", '"rms"')
    time.sleep(11)  # two answers on, there are rates


def replay(browser: Browser) -> None:
    browser.choose("#subscribe select[name=start]", "earliest")
    browser.fill("#subscribe input[name=filter]", "plant/line-1/#")
    browser.click("#subscribe button[type=submit]")
    browser.sees(".messages tbody tr:nth-child(100)")
    browser.click("#pause")
    browser.click(".messages tbody tr", "celsius")
    browser.sees(".message pre")


def trim(browser: Browser) -> None:
    browser.click("table[aria-label=Segments] button", "Trim")
    browser.sees("dialog .explain")


def open_event(browser: Browser) -> None:
    browser.click("table.events tr", "admin.action")
    browser.sees(".detail")


def open_record(browser: Browser) -> None:
    browser.click(".records tbody tr:nth-child(2)")
    browser.sees(".detail pre")


def open_message(browser: Browser) -> None:
    browser.click("table[aria-label='Dead letters'] tbody tr")
    browser.sees(".detail pre")


def trace(browser: Browser) -> None:
    browser.click(".actions button", "Trace")
    browser.click("dialog button.main")
    browser.sees("table[aria-label=Packets] td", "PUBACK")
    browser.sees_no(".toast")


def ask_access(browser: Browser) -> None:
    browser.fill("input[name=user]", "anna")
    browser.fill("input[name=topic]", "plant/line-2/#")
    browser.choose(".question select", "subscribe")
    browser.click(".question button")
    browser.sees(".answer")


def sign_out(browser: Browser) -> None:
    """The form, and the token given back for the pictures that follow."""
    secret = browser.run("sessionStorage.getItem('rumq.token')")
    browser.click("#sign-out")
    browser.sees("form #token")
    browser.run(f"sessionStorage.setItem('rumq.token', {secret!r})")


PROCESS = "plant/line-2/press-3/process"
PICTURES = {  # in this order: what is traced tells many events
    "events": Picture("/events", ("table.events td", "admin.action"), open_event),
    "overview": Picture("/?range=300", ("table[aria-label='Slow consumers'] td", "billing")),
    "overview-dark": Picture("/?range=300", ("table[aria-label='Slow consumers'] td", "billing"), theme="dark"),
    "overview-narrow": Picture("/?range=300", ("table[aria-label='Slow consumers'] td", "billing"), width=NARROW),
    "clients": Picture("/clients?sort=lag", ("tbody td", "billing")),
    "client": Picture("/client?id=billing", (".state", None)),
    "client-trace": Picture("/client?id=dashboard", ("table[aria-label=Subscriptions] td", None), trace, "dark"),
    "clients-narrow": Picture("/clients?sort=lag", ("tbody td", "billing"), theme="dark", width=NARROW),
    "groups": Picture("/groups", ("tbody td", "$share/")),
    "groups-narrow": Picture("/groups", ("tbody td", "$share/"), width=NARROW),
    "client-narrow": Picture("/client?id=billing", ("main", "wait for it"), theme="dark", width=NARROW),
    "settings": Picture("/settings?find=gateway", ("tbody td", "gateway.host")),
    "shards": Picture("/shards", ("main h1", None)),
    "topics": Picture("/topics", (".tree td", "plant/"), open_tree),
    "topics-dark": Picture("/topics?sort=rate", ("tbody .value", "celsius"), theme="dark"),
    "topic": Picture(f"/topic?topic={PROCESS}", (".records td", "celsius"), open_record),
    "topic-narrow": Picture(f"/topic?topic={PROCESS}", (".records td", "celsius"), width=NARROW),
    "retained": Picture("/retained", ("tbody td", "press-1/state")),
    "queues": Picture("/queues", ("table[aria-label=Queues] td", "news")),
    "queue": Picture("/queue?label=orders", ("table[aria-label='Dead letters'] td", None), open_message),
    "queue-narrow": Picture("/queue?label=news", ("table[aria-label=Messages] td", None), theme="dark", width=NARROW),
    "streams": Picture("/streams", (".plot canvas", None), theme="dark"),
    "stream": Picture("/stream?stream=main", ("table[aria-label=Segments] td", "sealed")),
    "trim": Picture("/stream?stream=main", ("table[aria-label=Segments] td", "sealed"), trim),
    "exports": Picture("/exports", ("table[aria-label=Exports] td", None)),
    "console": Picture("/console", ("#connection .dot.good", None), replay),
    "console-narrow": Picture("/console", ("#connection .dot.good", None), replay, "dark", NARROW),
    "bans": Picture("/bans", ("main h1", None)),
    "traces": Picture("/traces", ("tbody td", "dashboard")),
    "access": Picture("/access", ("main h1", None), ask_access),
    "sign-in": Picture("/", ("main h1", None), sign_out),
}


@contextmanager
def plant(folder: Path) -> Iterator[Gateway]:
    """A broker in the middle of its work."""
    (folder / "lake").mkdir()
    gateway = started(folder, f"log.export_to={folder / 'lake'}", "queues.enabled=true", shards=2)
    try:
        queue_scene.fill(gateway)
        scene.publish(gateway, scene.readings(60))
        for row in gateway.get("partitions")["partitions"]:
            gateway.act("seal", stream="main", partition=row["partition"])
        gateway.act("ban", kind="address", name="192.0.2.17", seconds=3600)
        yield gateway
    finally:
        gateway.broker.end()


class Plant:
    """Publishes in the background, some hundred messages a second, until it is ended."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway, self._ended = gateway, threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 60
        while not self._ended.wait(0.2):
            scene.publish(self._gateway, scene.readings(1, number))
            number += 1

    def end(self) -> None:
        self._ended.set()
        self._thread.join()


@contextmanager
def consumed(gateway: Gateway) -> Iterator[incident.SlowConsumer]:
    """The plant publishes, and some read it. yields: billing, which acknowledges nothing"""
    filters = {"billing": "orders/#", "dashboard": "plant/#", "archive": "plant/+/energy"}
    filters |= dict.fromkeys(("press-a", "press-b"), "$share/presses/plant/+/press-1/process")
    with ExitStack() as ends:
        consumers = []
        for client, topic_filter in filters.items():
            consumers.append(incident.SlowConsumer(gateway.broker.address, client, topic_filter))
            ends.callback(consumers[-1].end)
        for consumer in consumers[1:]:
            consumer.go_on()
        ends.callback(Plant(gateway).end)
        yield consumers[0]


def take(page: Page, name: str, picture: Picture) -> None:
    browser = page.browser
    browser.window(picture.width, HEIGHT, theme=picture.theme)
    page.show(picture.place)
    browser.sees(*picture.ready)
    if picture.act is not None:
        picture.act(browser)
    time.sleep(1.0)  # plots are drawn, values have come
    save(browser, name)


def save(browser: Browser, name: str) -> None:
    path = FOLDER / f"{name}.png"
    browser.screenshot(path)
    size = path.stat().st_size
    assert size <= BYTES_MAX, f"{path}: {size} bytes"
    print(f"{path.relative_to(FOLDER.parents[1])}: {size // 1024} KiB", flush=True)


def take_cluster(program: str) -> None:
    with ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory()))
        gateway = ends.enter_context(cluster(folder))
        browser = Browser(program, folder / "browser")
        ends.callback(browser.end)
        page = Page(browser, gateway)
        browser.window(WIDE, HEIGHT)
        page.sign_in()
        page.show("/cluster")
        browser.sees(".figures", "3 of 3")
        gateway.kill_last()
        browser.sees(".figures", "2 of 3")
        browser.sees("table[aria-label=Shards] .tag", "n3, away")
        browser.sees_no(".tag", "no leader")
        take(page, "cluster", Picture("/cluster", ("table[aria-label=Nodes] .tag", "gone")))


def take_terminal() -> None:
    with ExitStack() as ends:
        gateway = ends.enter_context(plant(Path(ends.enter_context(tempfile.TemporaryDirectory()))))
        incident.begin(gateway, ends.enter_context(consumed(gateway)))
        path = FOLDER / "top.svg"
        take_top(gateway.broker.data, path, SECONDS // 2)
        print(f"{path.relative_to(FOLDER.parents[1])}: {path.stat().st_size // 1024} KiB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "names", nargs="*", help=f"incident, cluster, top, {', '.join(PICTURES)} [all but cluster and top]"
    )
    wanted = parser.parse_args().names or [*PICTURES, "incident"]
    FOLDER.mkdir(exist_ok=True)
    if "top" in wanted:
        take_terminal()
    if set(wanted) == {"top"}:
        return
    program = found()
    if program is None:
        parser.error(f"no browser is installed: sudo apt-get install {NAMES[0]}")
    if "cluster" in wanted:
        take_cluster(program)
    if not {*PICTURES, "incident"} & {*wanted}:
        return
    with ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory()))
        gateway = ends.enter_context(plant(folder))
        browser = Browser(program, folder / "browser")
        ends.callback(browser.end)
        page = Page(browser, gateway)
        billing = ends.enter_context(consumed(gateway))
        time.sleep(SECONDS / 2)
        incident.begin(gateway, billing)
        time.sleep(SECONDS / 2)
        browser.window(WIDE, HEIGHT)
        page.sign_in()
        for name in wanted:
            if name in PICTURES:
                take(page, name, PICTURES[name])
        if "incident" in wanted:
            browser.window(WIDE, HEIGHT)
            incident.play(page, gateway, billing, lambda name: save(browser, name))


if __name__ == "__main__":
    main()
