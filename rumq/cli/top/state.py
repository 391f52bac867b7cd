"""What the user looks at: the view, its order and filter, the selected row. Keys change it; nothing here is drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, cast

from rumq.admin import requests as q
from rumq.admin.merging import CLIENT_SORTS, TOPIC_SORTS
from rumq.errors import ConfigError, Fault

INTERVAL_MIN, INTERVAL_MAX = 0.2, 60.0
ROWS_MAX = 200  # of one request: a page
EVENTS_MAX = 200


class TopView(NamedTuple):
    """sorts: orders of the broker, the first is the usual one; filter_is: what its filter is"""

    name: str
    sorts: tuple[str, ...] = ()
    filter_is: str = ""


CLIENT_ORDERS = (
    "rate",
    "lag",
    "bytes",
    "in-flight",
    "lost",
    "since",
    "published",
    "delivered",
    "messages",
    "client",
)
VIEWS = (
    TopView("clients", CLIENT_ORDERS, "client id with * and ?"),
    TopView("topics", ("records", "rate", "topic"), "topic filter"),
    TopView("shards"),
    TopView("partitions", (), "part of the stream's name"),
    TopView("groups", (), "client id with * and ?"),
    TopView("events", (), "name with * and ?"),
)
assert set(CLIENT_ORDERS) == CLIENT_SORTS.keys() and set(VIEWS[1].sorts) == TOPIC_SORTS.keys()


@dataclass(slots=True)
class TopState:
    """typing: the filter that is being typed; None: keys are commands. client: shown in detail

    offset: rows that are skipped; selected: row on the screen"""

    view: int = 0
    orders: dict[str, int] = field(default_factory=dict)
    filters: dict[str, str] = field(default_factory=dict)
    typing: str | None = None
    client: str | None = None
    is_paused: bool = False
    is_helping: bool = False
    has_quit: bool = False
    selected: int = 0
    offset: int = 0
    interval: float = 1.0

    @classmethod
    def begun(cls, view: str, sort: str | None, filter_: str, client: str | None, interval: float) -> TopState:
        """raises: ConfigError for an order that the view does not have"""
        number = next(index for index, each in enumerate(VIEWS) if each.name == view)
        state = cls(view=number, client=client, interval=interval)
        if filter_:
            state.filters[view] = filter_
        if sort is not None:
            sorts = VIEWS[number].sorts
            if sort not in sorts:
                allowed = f"expected one of {', '.join(sorts)}" if sorts else f"{view} have one order"
                raise ConfigError(Fault("--sort", sort, "", allowed))
            state.orders[view] = sorts.index(sort)
        return state

    @property
    def shown(self) -> TopView:
        return VIEWS[self.view]

    @property
    def sort(self) -> str:
        sorts = self.shown.sorts
        return sorts[self.orders.get(self.shown.name, 0)] if sorts else ""

    @property
    def filter(self) -> str:
        return self.filters.get(self.shown.name, "")

    def request(self, rows: int) -> tuple[str, q.Request]:
        """(question, request) of at most one page of rows."""
        limit = max(1, min(rows, ROWS_MAX))
        text = self.filter or None
        if self.client is not None:
            return "client", q.OneClient(client=self.client)
        match self.shown.name:
            case "clients":
                order = cast(q.ClientSort, self.sort)
                return "clients", q.Clients(client=pattern(text), sort=order, limit=limit, offset=self.offset)
            case "topics":
                by = cast(Literal["records", "rate", "topic"], self.sort)
                return "topics", q.Topics(topic=text, sort=by, limit=limit, offset=self.offset)
            case "groups":
                return "groups", q.Groups(client=pattern(text), limit=limit, offset=self.offset)
            case "events":
                return "events", q.Events(event=pattern(text) or "*", level="info", limit=min(rows, EVENTS_MAX))
            case name:
                return name, q.Nothing()

    def key(self, key: str, rows: int, names: list[str]) -> bool:
        """A key was pressed. rows: that fit; names: what is on the screen. returns: whether to ask anew"""
        if self.typing is not None:
            return self._typed(key)
        if self.is_helping:
            self.is_helping = False
            return False
        match key:
            case "q" | "Q" | "ctrl-c" | "ctrl-d":
                self.has_quit = True
            case "esc" if self.client is not None:
                self.client = None
                return True
            case "esc" if self.filter:
                del self.filters[self.shown.name]
                return self._moved()
            case "tab" | "right" | "back-tab" | "left":
                return self._look_at(self.view + (1 if key in ("tab", "right") else -1))
            case "s" | "S" if self.shown.sorts and self.client is None:
                step = 1 if key == "s" else -1
                now = self.orders.get(self.shown.name, 0)
                self.orders[self.shown.name] = (now + step) % len(self.shown.sorts)
                return self._moved()
            case "/" if self.shown.filter_is and self.client is None:
                self.typing = self.filter
            case "p" | " ":
                self.is_paused = not self.is_paused
                return not self.is_paused
            case "up" | "k":
                self.selected = max(0, self.selected - 1)
            case "down" | "j":
                self.selected = max(0, min(self.selected + 1, len(names) - 1))
            case "enter" if self.shown.name == "clients" and self.selected < len(names):
                self.client = names[self.selected]
                return True
            case "page-down" if len(names) >= rows:
                self.offset = min(self.offset + rows, q.ROWS_MAX - ROWS_MAX)
                return True
            case "page-up":
                self.offset, was = max(0, self.offset - rows), self.offset
                return self.offset != was
            case "home":
                return self._moved()
            case "+" | "-":
                self.interval = min(INTERVAL_MAX, max(INTERVAL_MIN, self.interval * (2 if key == "+" else 0.5)))
            case "?" | "h":
                self.is_helping = True
            case _ if key.isdecimal() and 1 <= int(key) <= len(VIEWS):
                return self._look_at(int(key) - 1)
        return False

    def _typed(self, key: str) -> bool:
        assert self.typing is not None
        match key:
            case "enter":
                self.filters[self.shown.name], self.typing = self.typing, None
                return self._moved()
            case "esc" | "ctrl-c":
                self.typing = None
            case "backspace":
                self.typing = self.typing[:-1]
            case "ctrl-u":
                self.typing = ""
            case _ if len(key) == 1 and key.isprintable():
                self.typing += key
        return False

    def _look_at(self, view: int) -> bool:
        self.view, self.client = view % len(VIEWS), None
        return self._moved()

    def _moved(self) -> bool:
        self.offset = self.selected = 0
        return True


def pattern(text: str | None) -> str | None:
    """A part of a name is enough."""
    return text if text is None or "*" in text or "?" in text else f"*{text}*"
