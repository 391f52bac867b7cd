"""Topic id -> the groups that want it, for one partition: matched once per topic, not per message.

A *route* is an interned tuple of (group, form number). Its number is never used again for another one, so that all
topics are forgotten by raising the least number that still counts, however many there are: a topic is matched anew
when its next message comes."""
# compiled: warm

from __future__ import annotations

from array import array

from router.kernels import routes as kernel
from router.matching.groups import GroupTable
from router.readers.reader import DENIED, Group

UNKNOWN, STALE = 0, 1  # a topic that was never matched; one that is to be matched again
NUMBERS_END = 1 << 31
Route = tuple[tuple[Group, int], ...]
Places = memoryview | None  # row of a chunk -> place in a list of distinct routes; None: there is one


class RouteTable:
    """The routes of the topics of one partition, whose names are `names` (topic id -> name)."""

    def __init__(self, groups: GroupTable, names: list[bytes]) -> None:
        self._groups = groups
        self._names = names
        self._of_topic = array("I")
        self._least = self._next = STALE + 1  # routes with numbers below `_least` are invalid
        self._interned: dict[Route, int] = {}
        self._routes: dict[int, Route] = {}
        self._topics: dict[int, int] = {}  # route -> how many topics have it; unused ones are removed
        self.denied: set[int] = set()  # routes with a denied group
        self.epoch = 0
        self.matched = 0  # how often a topic was matched against all filters

    def __len__(self) -> int:
        return len(self._routes)

    def forget(self) -> None:
        """Match every topic again when its next message comes. Cost: constant"""
        self.epoch += 1
        if not self._routes:
            return  # all are forgotten already
        self._least = self._next
        self._interned, self._routes, self._topics = {}, {}, {}
        self.denied = set()
        if self._least > NUMBERS_END:
            self._of_topic = array("I", [STALE if number else UNKNOWN for number in self._of_topic])
            self._least = self._next = STALE + 1

    def forget_topic(self, topic_id: int) -> None:
        """Match one topic again when its next message comes."""
        self.epoch += 1
        if topic_id >= len(self._of_topic) or (number := self._of_topic[topic_id]) < self._least:
            return
        self._of_topic[topic_id] = STALE
        self._topics[number] -= 1
        if not self._topics[number]:
            del self._topics[number]
            del self._interned[self._routes.pop(number)]
            self.denied.discard(number)

    def route_of_row(self, rows: object) -> Route | None:
        """The route of the first row; None: its topic is to be matched, `routes_of`."""
        number = kernel.route_in(rows, self._of_topic, self._least)
        return self._routes[number] if number else None

    def routes_of(self, rows: object, first: int, stop: int) -> tuple[list[int], Places, int]:
        """The distinct routes of rows from `first` on, every topic of them matched; row -> which of them, None when
        there is one; and up to which row: `stop`, or less when the turn's visits do not go so far, `first` for none.
        The numbers are good until something is forgotten."""
        found, places = kernel.routes_in(rows, first, stop, self._of_topic, self._least)
        if found or first >= stop:
            return found, places, stop
        for topic_id in kernel.unrouted(rows, first, stop, self._of_topic, self._least):
            if topic_id >= len(self._of_topic):
                wanted = max(len(self._names), topic_id + 1)
                self._of_topic.frombytes(bytes(4 * (wanted - len(self._of_topic))))
            if self._of_topic[topic_id] < self._least and not self._match(topic_id):
                stop = kernel.first_unrouted(rows, first, stop, self._of_topic, self._least)
                break
        found, places = kernel.routes_in(rows, first, stop, self._of_topic, self._least)
        return found, places, stop

    def _match(self, topic_id: int) -> bool:
        """Find the route of a topic; False: the match continues in another turn."""
        left = self._groups.visits_left
        route = self._groups.route(self._names[topic_id].decode())
        if self._of_topic[topic_id]:
            self._groups.rematch_visits += left - self._groups.visits_left
        if route is None:
            return False
        self.matched += 1
        number = self._intern(route)
        self._of_topic[topic_id] = number
        self._topics[number] += 1
        return True

    @property
    def is_spent(self) -> bool:
        """Whether this turn's visits are used up: no more topics are matched."""
        return self._groups.visits_left <= 0

    def route(self, number: int) -> Route:
        return self._routes[number]

    def wanted_by(self, group: Group, numbers: list[int]) -> tuple[array[int], bool]:
        """A table place in `numbers` -> form number + 1, 0 where not wanted; and whether the group wants all."""
        table = array("I", bytes(4 * len(numbers)))
        whole = True
        for place, number in enumerate(numbers):
            for other, form in self._routes[number]:
                if other is group:
                    table[place] = form + 1
                    whole = whole and form != DENIED
                    break
            else:
                whole = False
        return table, whole

    def denied_to(self, group: Group, numbers: list[int]) -> array[int] | None:
        """A table place in `numbers` -> 1 where the group may not receive what it asked for; None: nowhere."""
        if self.denied.isdisjoint(numbers):
            return None
        table = array("I", [(group, DENIED) in self._routes[number] for number in numbers])
        return table if any(table) else None

    def _intern(self, route: Route) -> int:
        number = self._interned.get(route)
        if number is None:
            number = self._interned[route] = self._next
            self._next += 1
            self._routes[number] = route
            self._topics[number] = 0
            if any(form == DENIED for _, form in route):
                self.denied.add(number)
        return number
