"""Kernel: topic filters as a trie of runs of levels, in flat tables; which of them match a topic. MQTT 5.0, 4.7.

    filters   a/b/c   a/b/+/d   a/#          a node ends a run of levels that no filter ends or leaves within
    root ── a(#) ── b ── c*
                    └── +/d*                 * marks a node where a filter ends, (#) one where a filter ends with `#`

A node is a row of eight numbers, and refers to the levels of a filter that passes it: so a run is a slice, and to
split or join runs copies nothing. Filters that share nothing behind a few levels cost two nodes each, however long.
Levels are compared as numbers; a number is used again once no filter has its level.
"""

from array import array

import cython

if cython.compiled:
    from cython.cimports.commitlog.kernels.buffers import words as words_at

ONE = cython.declare(cython.uint, 1)  # the number of the level "+"; 0: a level that no filter has
# Fields of a node. Nodes and filters are numbered from 1: 0 is the root, and nobody's child.
DEPTH = cython.declare(cython.Py_ssize_t, 0)  # levels from the root to the end of its run
EXACT = cython.declare(cython.Py_ssize_t, 1)  # the filter that ends here
MANY = cython.declare(cython.Py_ssize_t, 2)  # the filter that ends here with "/#"
PLUS = cython.declare(cython.Py_ssize_t, 3)  # the child whose run begins with "+"
BRANCHES = cython.declare(cython.Py_ssize_t, 4)  # number of the other children; of two and more: `branches`
LEVEL = cython.declare(cython.Py_ssize_t, 5)  # of a single one: the level that its run begins with
CHILD = cython.declare(cython.Py_ssize_t, 6)  # and itself
FIELDS = cython.declare(cython.Py_ssize_t, 8)
FIRST_FOUND = cython.declare(cython.Py_ssize_t, 32)


@cython.final
@cython.cclass
class FilterIndex:
    """A set of filters, numbered, each counted. Its fields are typed in filter_index.pxd.

    count: distinct filters; filters, targets: filter number -> itself, and whatever its user sets
    nodes: used ones, with the root; visits: nodes visited by all matches so far"""

    def __init__(self) -> None:
        self.count = 0
        self.nodes = 1
        self.visits = 0
        self.numbers = {}  # filter -> number
        self.counts = [0]  # by filter number: how often it was added
        self.filters = [""]
        nothing: object = None
        self.targets = [nothing]
        self.rows = array("I", bytes(4 * FIELDS))
        self.paths = [b""]  # by node: numbers of levels from the root, of its run's last one at least
        self.branches = [None]  # by node: level -> child, of those with two and more
        self.levels = {}  # level -> number
        self.level_counts = [0, 0]  # by level number: in how many places of filters it is
        self.free_nodes = []
        self.free_filters = []
        self.free_levels = []

    def add(self, topic_filter: str) -> int:
        """Add one count of a filter; returns its number. Cost: its levels"""
        known = self.numbers.get(topic_filter)
        if known is not None:
            self.counts[known] += 1
            return known
        if self.free_filters:
            number = self.free_filters.pop()
            self.counts[number] = 1
        else:
            number = len(self.counts)
            self.counts.append(1)
            self.filters.append("")
            self.targets.append(None)
        self.filters[number] = topic_filter
        self.numbers[topic_filter] = number
        self.count += 1
        levels: list = topic_filter.split("/")
        field: cython.Py_ssize_t = EXACT
        if levels[len(levels) - 1] == "#":
            levels.pop()
            field = MANY
        path: bytes = array("I", [self.level_number(level) for level in levels]).tobytes()
        self.rows[self.node_of(path, len(levels)) * FIELDS + field] = number
        return number

    def discard(self, topic_filter: str) -> int:
        """Remove one count of a filter; returns its number, 0 if others are left. KeyError when it is not here."""
        number = self.numbers[topic_filter]
        self.counts[number] -= 1
        if self.counts[number]:
            return 0
        del self.numbers[topic_filter]
        self.filters[number], self.targets[number] = "", None
        self.free_filters.append(number)
        self.count -= 1
        levels: list = topic_filter.split("/")
        field: cython.Py_ssize_t = EXACT
        if levels[len(levels) - 1] == "#":
            levels.pop()
            field = MANY
        numbers: list = [ONE if level == "+" else self.levels[level] for level in levels]
        above: list = [0]
        while self.rows[above[len(above) - 1] * FIELDS + DEPTH] < len(numbers):
            node = above[len(above) - 1]
            above.append(self.child(node, numbers[self.rows[node * FIELDS + DEPTH]]))
        self.rows[above[len(above) - 1] * FIELDS + field] = 0
        self.tidy(above)
        for level in levels:
            self.release_level(level)
        return number

    def level_number(self, level: str) -> int:
        if level == "+":
            return 1
        number = self.levels.get(level)
        if number is None:
            if self.free_levels:
                number = self.free_levels.pop()
            else:
                number = len(self.level_counts)
                self.level_counts.append(0)
            self.levels[level] = number
        self.level_counts[number] += 1
        return int(number)

    def release_level(self, level: str) -> None:
        if level == "+":
            return
        number = self.levels[level]
        self.level_counts[number] -= 1
        if not self.level_counts[number]:
            del self.levels[level]
            self.free_levels.append(number)

    # Nodes

    def new_node(self, depth: cython.Py_ssize_t, path: bytes) -> int:
        if self.free_nodes:
            node = self.free_nodes.pop()
        else:
            node = len(self.paths)
            self.paths.append(b"")
            self.branches.append(None)
            self.rows.frombytes(bytes(4 * FIELDS))
        self.rows[node * FIELDS + DEPTH] = depth
        self.paths[node] = path
        self.nodes += 1
        return int(node)

    def free_node(self, node: cython.Py_ssize_t) -> None:
        at: cython.Py_ssize_t
        for at in range(node * FIELDS, (node + 1) * FIELDS):
            self.rows[at] = 0
        self.paths[node] = b""
        self.branches[node] = None
        self.free_nodes.append(node)
        self.nodes -= 1

    def child(self, node: cython.Py_ssize_t, level: cython.Py_ssize_t) -> int:
        """The child whose run begins with a level; 0: there is none."""
        base: cython.Py_ssize_t = node * FIELDS
        if level == ONE:
            return self.rows[base + PLUS]
        if self.rows[base + BRANCHES] > 1:
            return self.branches[node].get(level, 0)
        return self.rows[base + CHILD] if level and self.rows[base + LEVEL] == level else 0

    def set_child(self, node: cython.Py_ssize_t, level: cython.Py_ssize_t, child: cython.Py_ssize_t) -> None:
        """child: 0 for none any more"""
        base: cython.Py_ssize_t = node * FIELDS
        if level == ONE:
            self.rows[base + PLUS] = child
            return
        branches: dict
        if self.rows[base + BRANCHES] > 1:
            branches = self.branches[node]
        elif self.rows[base + BRANCHES] == 1:
            branches = {self.rows[base + LEVEL]: self.rows[base + CHILD]}
        else:
            branches = {}
        if child:
            branches[level] = child
        else:
            del branches[level]
        self.rows[base + BRANCHES] = len(branches)
        self.rows[base + LEVEL] = self.rows[base + CHILD] = 0
        if len(branches) == 1:
            for only, under in branches.items():
                self.rows[base + LEVEL], self.rows[base + CHILD] = only, under
        self.branches[node] = branches if len(branches) > 1 else None

    def node_of(self, path: bytes, size: cython.Py_ssize_t) -> int:
        """The node where a path of `size` levels ends; made where there is none."""
        wanted: object = memoryview(path).cast("I")
        node: cython.Py_ssize_t = 0
        depth: cython.Py_ssize_t = 0
        child: cython.Py_ssize_t
        upper: cython.Py_ssize_t
        first: cython.Py_ssize_t
        end: cython.Py_ssize_t
        while depth < size:
            first = wanted[depth]
            child = self.child(node, first)
            if not child:
                child = self.new_node(size, path)
                self.set_child(node, first, child)
                return child
            run: object = memoryview(self.paths[child]).cast("I")
            end = self.rows[child * FIELDS + DEPTH]
            depth += 1
            while depth < end and depth < size and run[depth] == wanted[depth]:
                depth += 1
            if depth < end:
                upper = self.new_node(depth, path)
                self.set_child(upper, run[depth], child)
                self.set_child(node, first, upper)
                child = upper
            node = child
        return node

    def tidy(self, above: list) -> None:
        """Remove a node that nothing ends at or passes any more, and join runs. above: the way to it, from the root"""
        node: cython.Py_ssize_t = above.pop()
        if not node:
            return
        base: cython.Py_ssize_t = node * FIELDS
        if self.rows[base + EXACT] or self.rows[base + MANY]:
            return
        count: cython.Py_ssize_t = self.rows[base + BRANCHES] + (1 if self.rows[base + PLUS] else 0)
        if count > 1:
            return
        parent: cython.Py_ssize_t = above[len(above) - 1]
        level: cython.Py_ssize_t = memoryview(self.paths[node]).cast("I")[self.rows[parent * FIELDS + DEPTH]]
        if count:
            self.set_child(parent, level, self.rows[base + PLUS] or self.rows[base + CHILD])
            self.free_node(node)
            return
        self.set_child(parent, level, 0)
        self.free_node(node)
        self.tidy(above)

    # Matches

    def match(self, topic: str) -> list[str]:
        """Every filter that matches the topic name; a `$` topic needs its first level said (4.7.2)."""
        found, _, _ = self.walk(topic.split("/"), not topic.startswith("$"), [b""], 1 << 60)
        return [self.filters[number] for number in found]

    def walk(self, topic: list, is_plain: cython.bint, pending: list, visits_max: cython.longlong) -> tuple:
        """Visit nodes that can match, each once.

        topic: its levels; is_plain: it does not begin with `$`; pending: where to go on, at first [b""]
        returns: numbers of filters found, where to go on (empty: it is over), nodes visited, at most `visits_max`

        Filters that were added or discarded since `pending` was returned may be found or not."""
        rows: cython.p_uint
        path: cython.p_uint
        level_of: cython.p_uint
        stack: cython.p_uint
        found: cython.p_uint
        row: cython.p_uint
        size: cython.Py_ssize_t = len(topic)
        levels_held: bytes = array("I", [self.levels.get(each, 0) for each in topic]).tobytes()
        # Each node visited leaves two at most, one of which is visited next.
        stack_held: bytearray = bytearray(8 * (size + 2 + len(pending)))
        found_held: bytearray = bytearray(4 * FIRST_FOUND)
        rows_held: object = self.rows
        paths: list = self.paths
        if cython.compiled:
            rows, level_of = words_at(rows_held), words_at(levels_held)
            stack, found = words_at(stack_held), words_at(found_held)
        else:
            level_of = memoryview(levels_held).cast("I")
            stack, found = memoryview(stack_held).cast("I"), memoryview(found_held).cast("I")
        room: cython.Py_ssize_t = FIRST_FOUND
        count: cython.Py_ssize_t = 0
        top: cython.Py_ssize_t = 0
        visits: cython.longlong = 0
        node: cython.Py_ssize_t
        child: cython.Py_ssize_t
        depth: cython.Py_ssize_t
        end: cython.Py_ssize_t
        level: cython.uint
        held: bytes
        for prefix in pending:
            node = self.located(prefix, levels_held)
            if node >= 0:
                stack[top] = node
                stack[top + 1] = len(prefix) // 4 - 1 if node else 0
                top += 2
        while top and visits < visits_max:
            top -= 2
            node, depth = stack[top], stack[top + 1]
            visits += 1
            if cython.compiled:
                row = rows + node * FIELDS
            else:
                row = rows_held[node * FIELDS : (node + 1) * FIELDS]
            end = row[DEPTH]
            if end > size:
                continue
            held = paths[node]
            if cython.compiled:
                path = words_at(held)
            else:
                path = memoryview(held).cast("I")
            while depth < end and (path[depth] == ONE or path[depth] == level_of[depth]):
                depth += 1
            if depth < end:
                continue
            if count + 2 > room:
                room *= 2
                if cython.compiled:
                    found_held += bytes(2 * room)
                    found = words_at(found_held)
                else:
                    found.release()
                    found_held += bytes(2 * room)
                    found = memoryview(found_held).cast("I")
            # "a/#" also matches its parent level "a" (4.7.1.2); no first level of a filter but itself matches "$..."
            if row[MANY] and (end or is_plain):
                found[count] = row[MANY]
                count += 1
            if end == size:
                if row[EXACT]:
                    found[count] = row[EXACT]
                    count += 1
                continue
            level = level_of[end]
            if level and row[BRANCHES]:
                if row[BRANCHES] == 1:
                    child = row[CHILD] if row[LEVEL] == level else 0
                else:
                    child = self.branches[node].get(level, 0)
                if child:
                    stack[top] = child
                    stack[top + 1] = end
                    top += 2
            if row[PLUS] and (end or is_plain):
                stack[top] = row[PLUS]
                stack[top + 1] = end
                top += 2
        self.visits += visits
        left: list = []
        while top:
            top -= 2
            node, depth = stack[top], stack[top + 1]
            held = paths[node]
            left.append(held[: 4 * (depth + 1)] if node else b"")
        if not cython.compiled:
            found.release()
        return array("I", bytes(found_held[: 4 * count])), left, visits

    def located(self, prefix: bytes, topic: bytes) -> int:
        """The node whose run has the last level of a prefix; -1: no filter has it, or it does not match `topic`."""
        size: cython.Py_ssize_t = len(prefix) // 4
        node: cython.Py_ssize_t = 0
        depth: cython.Py_ssize_t = 0
        end: cython.Py_ssize_t
        wanted: object = memoryview(prefix).cast("I")
        there: object = memoryview(topic).cast("I")
        for depth in range(size):
            # The number of a level that no filter has any more may be that of another one now.
            if wanted[depth] != ONE and wanted[depth] != there[depth]:
                return -1
        depth = 0
        while depth < size:
            node = self.child(node, wanted[depth])
            if not node:
                return -1
            run: object = memoryview(self.paths[node]).cast("I")
            end = self.rows[node * FIELDS + DEPTH]
            depth += 1
            while depth < end and depth < size:
                if run[depth] != wanted[depth]:
                    return -1
                depth += 1
        return node


def tally(numbers: object, first: cython.Py_ssize_t, stop: cython.Py_ssize_t, targets: list) -> dict:
    """How many of filters first..stop of `numbers` have each target."""
    counts: dict = {}
    i: cython.Py_ssize_t
    of: cython.p_uint
    if cython.compiled:
        of = words_at(numbers)
    else:
        of = numbers
    for i in range(first, stop):
        target: object = targets[of[i]]
        counts[target] = counts.get(target, 0) + 1
    return counts


def place(number: cython.uint, numbers: object) -> int:
    """Where a number is among others; -1: nowhere."""
    i: cython.Py_ssize_t
    of: cython.p_uint
    if cython.compiled:
        of = words_at(numbers)
    else:
        of = numbers
    for i in range(len(numbers)):
        if of[i] == number:
            return i
    return -1
