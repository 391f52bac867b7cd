"""What callgrind wrote is read: own instructions of each function; those of libraries are told to who called them."""

from bench.cost.callgrind import Function, by_module, module_of, parse

TURN, PUMP = "/srv/rumq/shards/turn/turn.cpython-311-x86_64-linux-gnu.so", "/srv/rumq/net/pump.cpython-311-x86_64.so"
WRITTEN = f"""\
version: 1
creator: callgrind-3.19.0
events: Ir
ob=(1) {TURN}
fl=(1) ???
fn=(1) end_turn
0 100
cob=(2) /usr/lib/libpython3.11.so.1.0
cfi=(2) ???
cfn=(2) PyObject_GetAttr
calls=3 0
0 60
cob=(2)
cfn=(3) PyDict_New
calls=1 0
0 10

ob=(3) {PUMP}
fn=(4) read
+0 40
cob=(2)
cfn=(2)
calls=1 0
0 20
cfn=(5) helper
calls=1 0
0 7

fn=(5)
0 7

ob=(2)
fn=(2)
0 50
cfn=(6) lookup
calls=4 0
* 30

fn=(3)
0 10

fn=(6)
0 30

ob=(4) /usr/lib/libc.so.6
fn=(7) start
0 5
totals: 242
"""


def test_own_instructions_add_up_and_those_of_calls_are_no_part_of_them() -> None:
    counts = parse(WRITTEN)
    assert counts.total == 242
    assert counts.own[Function("end_turn", TURN)] == 100
    assert counts.calls[Function("read", PUMP), Function("helper", PUMP)] == 7  # no `cob`: the caller's


def test_what_a_library_takes_is_told_to_the_modules_that_called_it() -> None:
    """By what their calls took: of 80 instructions of a look-up and what is below, 60 were the turn's."""
    assert by_module(parse(WRITTEN)) == {
        "rumq.shards.turn.turn": (100, 100 + 10 + 60),
        "rumq.net.pump": (47, 47 + 20),
        "interpreter": (95, 5),
    }


def test_a_module_is_named_by_its_path_below_the_floors() -> None:
    assert module_of(Function("f", TURN)) == "rumq.shards.turn.turn"
    assert module_of(Function("f", "/srv/commitlog/chunk.cpython-311-x86_64-linux-gnu.so")) == "commitlog.chunk"
    assert module_of(Function("f", "/srv/rumq/lib/python3.11/lib-dynload/_heapq.cpython-311-x86_64-linux-gnu.so")) == ""
    assert module_of(Function("f", "/usr/lib/libpython3.11.so.1.0")) == ""
