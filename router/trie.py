"""A trie of topic filters: match a topic without visiting filters that cannot match. MQTT 5.0, 4.7.

    filters   a/b   a/+/c   a/#   #          a node a level; `+` and `#` are children like others,
    root ── a ── b*                          * marks a node where a filter ends
     │      ├── + ── c*
     │      └── #*
     └── #*

Each filter has a count of how often it was added. Cost of a match: the nodes that can match, each once. Filters can be
chosen so that these are nearly all nodes; then a match is made in pieces (`Walk`)."""

from __future__ import annotations

from collections import deque


class Node:
    __slots__ = ("children", "count", "topic_filter")

    def __init__(self) -> None:
        self.children: dict[str, Node] = {}
        self.topic_filter = ""
        self.count = 0


class FilterTrie:
    """A set of topic filters, each counted. visits: nodes visited by all matches so far"""

    def __init__(self) -> None:
        self._root = Node()
        self.count = 0
        self.visits = 0

    def add(self, topic_filter: str) -> None:
        node = self._root
        for level in topic_filter.split("/"):
            child = node.children.get(level)
            if child is None:
                child = node.children[level] = Node()
            node = child
        if not node.count:
            node.topic_filter = topic_filter
            self.count += 1
        node.count += 1

    def discard(self, topic_filter: str) -> None:
        """Remove one count of the filter; KeyError when it is not here."""
        levels = topic_filter.split("/")
        path = [self._root]
        for level in levels:
            path.append(path[-1].children[level])
        node = path[-1]
        if not node.count:
            raise KeyError(topic_filter)
        node.count -= 1
        if node.count:
            return
        self.count -= 1
        for level, parent in zip(reversed(levels), reversed(path[:-1]), strict=True):
            child = parent.children[level]
            if child.count or child.children:
                break
            del parent.children[level]

    def match(self, topic: str) -> list[str]:
        """Every filter that matches the topic name; a `$` topic needs its first level said (4.7.2)."""
        walk = self.walk(topic)
        self.go_on(walk, 1 << 60)
        return walk.found

    def walk(self, topic: str) -> Walk:
        """A match that has not visited any node yet."""
        return Walk(self._root, topic)

    def go_on(self, walk: Walk, visits_max: int) -> int:
        """Visit so many more nodes; returns how many were visited. `Walk.over`: none are left.

        A filter that is added or discarded meanwhile may be found or not: the caller has to handle those."""
        nodes, levels, found = walk.nodes, walk.levels, walk.found
        last = len(levels)
        visits = 0
        while nodes and visits < visits_max:
            node, depth = nodes.popleft()
            visits += 1
            children = node.children
            if depth == last:
                if node.count:
                    found.append(node.topic_filter)
                # "a/#" also matches its parent level "a" (4.7.1.2).
                if (many := children.get("#")) is not None and many.count:
                    found.append(many.topic_filter)
                continue
            level = levels[depth]
            if depth or walk.is_plain:
                if (many := children.get("#")) is not None and many.count:
                    found.append(many.topic_filter)
                if (one := children.get("+")) is not None:
                    nodes.append((one, depth + 1))
            if (child := children.get(level)) is not None and level != "+" and level != "#":
                nodes.append((child, depth + 1))
        self.visits += visits
        return visits


class Walk:
    """A match in progress. found: filters so far; nodes: those still to be visited, with their depth"""

    __slots__ = ("found", "is_plain", "levels", "nodes")

    def __init__(self, root: Node, topic: str) -> None:
        self.levels = topic.split("/")
        self.is_plain = not topic.startswith("$")
        self.found: list[str] = []
        self.nodes = deque([(root, 0)])

    @property
    def over(self) -> bool:
        return not self.nodes
