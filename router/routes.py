"""Topic number -> who wants it, for one partition: matched once per topic, not per message.

A *route* is an interned tuple of (group, form number); route 0 is "not matched yet", route 1 is "nobody".
Knows no cursor, no reader."""

from __future__ import annotations

from array import array

from router.kernels import routes as kernel
from router.readers import Group, Groups

UNKNOWN, NOBODY = 0, 1
Route = tuple[tuple[Group, int], ...]


class RouteTable:
    """The routes of the topics of one partition, whose names are `names` (topic id -> name)."""

    def __init__(self, groups: Groups, names: list[bytes]) -> None:
        self._groups = groups
        self._names = names
        self._of_topic = array("I")
        self._lent = False
        self._interned: dict[Route, int] = {(): NOBODY}
        self._routes: list[Route] = [(), ()]
        self.epoch = 0

    def __len__(self) -> int:
        return len(self._routes)

    def lend(self) -> array[int]:
        """Topic id -> route, as it is now: for effects, which are carried out after later commands of their step."""
        self._lent = True
        return self._of_topic

    def returned(self) -> None:
        """Whatever was lent has been used."""
        self._lent = False

    def forget(self, topic_id: int | None = None) -> None:
        """Match one topic anew when it comes next, or all of them."""
        self.epoch += 1
        if topic_id is None:
            self._of_topic = array("I", bytes(4 * len(self._of_topic)))
            if len(self._routes) > 1024:  # or churn of subscriptions would keep dead groups for ever
                self._interned = {(): NOBODY}
                self._routes = [(), ()]
        elif topic_id < len(self._of_topic):
            if self._lent:
                self._of_topic = array("I", self._of_topic)
                self._lent = False
            self._of_topic[topic_id] = UNKNOWN

    def routes_of(self, rows: object, first: int, stop: int) -> list[int]:
        """The distinct routes of rows first..stop, every topic of them matched."""
        found = kernel.routes_in(rows, first, stop, self._of_topic)
        if found or first >= stop:
            return found
        for topic_id in kernel.unrouted(rows, first, stop, self._of_topic):
            if topic_id >= len(self._of_topic):
                wanted = max(len(self._names), topic_id + 1)
                self._of_topic.frombytes(bytes(4 * (wanted - len(self._of_topic))))
            if not self._of_topic[topic_id]:
                self._of_topic[topic_id] = self._intern(self._groups.match(self._names[topic_id].decode()))
        return kernel.routes_in(rows, first, stop, self._of_topic)

    def route(self, number: int) -> Route:
        return self._routes[number]

    def wanted_by(self, group: Group, routes: list[int]) -> tuple[bytes, bool]:
        """A table route -> form number + 1, 0 where not wanted; and whether the group wants all `routes`."""
        table = bytearray(len(self._routes))
        whole = True
        for number in routes:
            for other, form in self._routes[number]:
                if other is group:
                    table[number] = form + 1
                    break
            else:
                whole = False
        return bytes(table), whole

    def _intern(self, route: Route) -> int:
        number = self._interned.get(route)
        if number is None:
            number = self._interned[route] = len(self._routes)
            self._routes.append(route)
        return number
