"""The structure of the product: no import circles, files and folders that can be read at a glance, short constructors.

No module imports itself by way of others. Imports inside functions and under TYPE_CHECKING count:
a reader has to hold all files of a circle at once, whenever Python loads them."""

import ast

import pytest

from tests.house.product import (
    ROOT,
    circles,
    classes,
    files,
    full_folders,
    graph_of,
    long_functions,
    long_signatures,
    modules,
    scripts,
    scripts_of,
    shared_class_names,
    wide_classes,
)


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert circles(modules()) == []


def test_no_script_of_the_page_imports_itself_by_way_of_others() -> None:
    assert circles(scripts()) == []


def test_a_circle_of_scripts_is_seen() -> None:
    sources = {
        "views/topic.js": "import { Rows } from './rows.js';",
        "views/rows.js": "import {\n  Heading,\n} from '../parts/place.js';",
        "parts/place.js": "export { views } from '../views/topic.js';",
    }
    assert circles(scripts_of(sources)) == [["parts/place.js", "views/rows.js", "views/topic.js"]]


@pytest.mark.parametrize(
    "back",
    [
        "from a.one import f",
        "def g():\n    from a.one import f",  # hidden in a function
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from a import one",  # hidden from Python
    ],
)
def test_a_circle_is_seen(back: str) -> None:
    sources = {"a.one": "import a.two", "a.two": "from a.three import h", "a.three": back}
    assert circles(graph_of(sources)) == [["a.one", "a.three", "a.two"]]


def test_no_module_is_longer_than_one_job() -> None:
    """A file over 400 lines (a kernel: 600) has become the centre that everything grows into: split it by noun."""
    lines = {path: len(path.read_text().splitlines()) for path in files()}
    allowed = {path: 600 if path.parent.name == "kernels" else 400 for path in lines}
    assert {str(path.relative_to(ROOT)): n for path, n in lines.items() if n > allowed[path]} == {}


def test_a_folder_can_be_read_at_a_glance() -> None:
    assert full_folders() == {}


def test_no_constructor_takes_more_than_it_can_explain() -> None:
    """More than eight parameters: some belong together, or the class has more than one job. Plain data is exempt."""
    long = {}
    for path in files():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                for part in node.body:
                    if isinstance(part, ast.FunctionDef) and part.name == "__init__":
                        count = len(part.args.args) - 1 + len(part.args.kwonlyargs)
                        if count > 8:
                            long[f"{path.relative_to(ROOT)}: {node.name}"] = count
    assert long == {}


HOT_SESSION = "each read or write uses most of its fields: a second object would cost each of them a look-up and a call"
HOT_LOG = "each write group uses most of its fields: a second object would cost each of them a look-up and a call"
HEADER_FIELDS = "the fields of a chunk's header, once a written chunk: an object for them would cost more"

# What stays above a limit, and why: file: name -> reason.
WIDE_CLASSES = {
    "rumq/cluster/control/records.py: NodeRecord": "what a node says of itself: each field is in the control plane",
    "rumq/bridge/kernels/relay_run.py: RelayRun": "a kernel: what each packet is compared with, as numbers",
    "rumq/settings/table/__init__.py: Settings": "settings: one attribute for each section of config.toml",
    "commitlog/chunk.py: Header": "a record: the fields of a chunk on disk, by docs/reference/log-format.md",
    "commitlog/log/partition.py: Partition": HOT_LOG,
    "commitlog/write/segment_writer.py: SegmentWriter": HOT_LOG,
    "commitlog/write/write_group.py: WriteGroup": HOT_LOG,
    "rumq/mqtt/kernels/wire_state.py: Wire": HOT_SESSION,
    "rumq/net/connection.py: Connection": HOT_SESSION,
    "rumq/net/pump.py: Pump": HOT_SESSION,
    "rumq/session/connection/client_state.py: Client": "values of one client, as CONNECT and the login gave them",
    "rumq/session/flow_control/listener_policy.py: ListenerPolicy": "settings of one listener, each by its name",
    "rumq/session/journal/replayed_session.py: ReplayedSession": "a session as the journal leaves it: MQTT 5.0, 4.1",
    "rumq/session/moves/moved_client.py: MovedClient": "a message between leaders: each field is on the wire",
    "rumq/session/protocol/connected.py: Connected": HOT_SESSION,
    "rumq/session/state/session.py: Session": "session state as MQTT 5.0, 4.1 lists it",
    "rumq/shards/write_path/group_commit.py: GroupCommit": HOT_SESSION,
}
LONG_SIGNATURES = {
    "commitlog/chunk.py: encode_header": HEADER_FIELDS,
    "commitlog/kernels/small_chunk.py: encode": HEADER_FIELDS,
    "commitlog/kernels/small_chunk.py: encode_python": HEADER_FIELDS,
    "rumq/mqtt/kernels/fanout.py: build": "a kernel, once a chunk and group: an object for them would cost more",
    "rumq/spark/source/history.py: read": "public, as `rumq.spark.read`: its keywords are documented and used",
}
LONG_FUNCTIONS: dict[str, str] = {}
LONG_TURN: dict[str, str] = {}
REQUEST_AND_ANSWER = "the request and the answer of one operation: both are names of types in the description of REST"
PACKET = "the packet of MQTT 5.0, 3, whose name errors and refusals tell"
SECTION = "the section of config.toml has that name"
PUBLIC = "public, as users of `rumq` and `rumq.client` write it"
SHARED_NAMES = {
    "Auth, 2 files": f"{PACKET}; {SECTION}",
    "Client, 2 files": f"{PUBLIC}; a client of the broker, on the path of each packet",
    "Clients, 2 files": REQUEST_AND_ANSWER,
    "Cluster, 2 files": f"an answer of REST; {SECTION}",
    "Events, 4 files": f"{REQUEST_AND_ANSWER}, which REST extends; {SECTION}",
    "Groups, 2 files": REQUEST_AND_ANSWER,
    "Ledger, 2 files": REQUEST_AND_ANSWER,
    "Message, 2 files": f"{PUBLIC}; a type of REST",
    "Publish, 2 files": f"{PACKET}; a type of REST",
    "Queues, 2 files": f"what a door serves; {SECTION}",
    "Records, 2 files": f"{PUBLIC}; an answer of REST",
    "Retained, 2 files": REQUEST_AND_ANSWER,
    "Segments, 2 files": REQUEST_AND_ANSWER,
    "Shards, 2 files": f"an answer of REST; {SECTION}",
    "Spans, 2 files": REQUEST_AND_ANSWER,
    "Subscribers, 2 files": REQUEST_AND_ANSWER,
    "TopicTree, 2 files": REQUEST_AND_ANSWER,
    "Topics, 2 files": REQUEST_AND_ANSWER,
    "Trace, 2 files": f"a request of REST; {SECTION}",
}
TURN_LINES_MAX = 180


def long_turn() -> dict[str, int]:
    """The turn is what every reader of a shard reads first: it fits on three screens."""
    turn = next(each for each in classes() if each.name == "Turn" and each.path.parent.name == "turn")
    return {str(turn): turn.lines} if turn.lines > TURN_LINES_MAX else {}


def shared_names() -> dict[str, int]:
    """A name says one thing in the whole product: what stands in two files is found twice, and read as the other."""
    return {f"{name}, {count} files": count for name, count in shared_class_names().items()}


LIMITS = {
    "attributes": (wide_classes, WIDE_CLASSES),
    "parameters": (long_signatures, LONG_SIGNATURES),
    "lines of a function": (long_functions, LONG_FUNCTIONS),
    "lines of Turn": (long_turn, LONG_TURN),
    "files of a class name": (shared_names, SHARED_NAMES),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_what_is_above_a_limit_says_why(limit: str) -> None:
    """More than a reader keeps in mind: split it by noun, two classes with one job each, or give the reason."""
    above, exceptions = LIMITS[limit]
    assert {each: count for each, count in above().items() if each not in exceptions} == {}


@pytest.mark.parametrize("limit", LIMITS)
def test_an_exception_that_is_no_longer_one_goes(limit: str) -> None:
    above, exceptions = LIMITS[limit]
    assert sorted(exceptions.keys() - above().keys()) == []


@pytest.mark.parametrize("limit", LIMITS)
def test_an_exception_has_a_reason(limit: str) -> None:
    assert [each for each, reason in LIMITS[limit][1].items() if not reason] == []
