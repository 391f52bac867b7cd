"""One topic against all filters, without looking at filters that cannot match. MQTT 5.0, 4.7.

    filters   a/b   a/+/c   a/#   #          a node a level; `+` and `#` are children like others,
    root ── a ── b*                          * marks a node where a filter ends
     │      ├── + ── c*
     │      └── #*
     └── #*

Knows no subscriber: it counts how often each filter was added. Cost of a match: the nodes that can match."""

from __future__ import annotations


class Node:
    __slots__ = ("children", "count", "topic_filter")

    def __init__(self) -> None:
        self.children: dict[str, Node] = {}
        self.topic_filter = ""
        self.count = 0


class FilterTrie:
    """A set of topic filters, each counted."""

    def __init__(self) -> None:
        self._root = Node()
        self.count = 0

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
        """Take one count of the filter back; KeyError when it is not here."""
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
        levels = topic.split("/")
        found: list[str] = []
        nodes = [self._root]
        wild = not topic.startswith("$")
        for level in levels:
            following = []
            for node in nodes:
                children = node.children
                if wild:
                    if (many := children.get("#")) is not None and many.count:
                        found.append(many.topic_filter)
                    if (one := children.get("+")) is not None:
                        following.append(one)
                if (child := children.get(level)) is not None and level != "+" and level != "#":
                    following.append(child)
            nodes = following
            wild = True
            if not nodes:
                return found
        for node in nodes:
            if node.count:
                found.append(node.topic_filter)
            # "a/#" also matches its parent level "a" (4.7.1.2).
            if (many := node.children.get("#")) is not None and many.count:
                found.append(many.topic_filter)
        return found


class TopicTree:
    """Topic names by level, for one filter against many names. A value is kept with each name."""

    __slots__ = ("_root",)

    def __init__(self) -> None:
        self._root: dict[str, list[object]] = {}  # level -> [children dict, value or None]

    def set(self, topic: str, value: object) -> None:
        children = self._root
        levels = topic.split("/")
        for level in levels[:-1]:
            entry = children.get(level)
            if entry is None:
                entry = children[level] = [{}, None]
            children = entry[0]  # type: ignore[assignment]
        entry = children.get(levels[-1])
        if entry is None:
            children[levels[-1]] = [{}, value]
        else:
            entry[1] = value

    def remove(self, topic: str) -> None:
        path: list[tuple[dict[str, list[object]], str]] = []
        children = self._root
        for level in topic.split("/"):
            entry = children.get(level)
            if entry is None:
                return
            path.append((children, level))
            children = entry[0]  # type: ignore[assignment]
        above, level = path[-1]
        above[level][1] = None
        for above, level in reversed(path):
            entry = above[level]
            if entry[0] or entry[1] is not None:
                return
            del above[level]

    def find(self, topic_filter: str) -> list[object]:
        """The values of every topic name that the filter matches."""
        found: list[object] = []
        levels = topic_filter.split("/")
        stack: list[tuple[dict[str, list[object]], int]] = [(self._root, 0)]
        while stack:
            children, depth = stack.pop()
            level = levels[depth]
            last = depth == len(levels) - 1
            if level == "#":
                for name, entry in children.items():
                    if depth or not name.startswith("$"):
                        collect(entry, found)
                continue
            if level == "+":
                entries = [e for n, e in children.items() if depth or not n.startswith("$")]
            else:
                one = children.get(level)
                entries = [one] if one is not None else []
            for entry in entries:
                if last:
                    if entry[1] is not None:
                        found.append(entry[1])
                else:
                    if levels[depth + 1] == "#" and depth + 2 == len(levels) and entry[1] is not None:
                        found.append(entry[1])
                    stack.append((entry[0], depth + 1))  # type: ignore[arg-type]
        return found


def collect(entry: list[object], found: list[object]) -> None:
    """Add the values of a node and of all below it."""
    stack = [entry]
    while stack:
        children, value = stack.pop()
        if value is not None:
            found.append(value)
        stack.extend(children.values())  # type: ignore[attr-defined]
