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
