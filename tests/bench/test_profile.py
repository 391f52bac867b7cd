"""What a profiler says becomes stacks, shares and a flame graph."""

import xml.etree.ElementTree as ET
from collections import Counter

import pytest

from bench.__main__ import main
from bench.connections import BenchFault
from bench.profile.flame import WIDTH, Box, boxes, draw, tree_of
from bench.profile.recorder import installed
from bench.profile.stacks import Frame, from_perf, from_py_spy, hottest, kind_of, readable, shares

SAMPLES = """\
rumqd
\t    7f1a2b3c4d5e __pyx_pf_4rumq_3net_4pump_4Pump_2turn (/srv/rumq/net/pump.cpython-311-x86_64-linux-gnu.so)
\t    7f1a2b3c4d5f _PyEval_EvalFrameDefault+0x1234 (/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0)

rumqd
\tffffffff81000000 __x64_sys_sendto ([kernel.kallsyms])
\t    7f1a2b3c4d5e __pyx_pf_4rumq_3net_4pump_4Pump_2turn (/srv/rumq/net/pump.cpython-311-x86_64-linux-gnu.so)
\t    7f1a2b3c4d5f _PyEval_EvalFrameDefault+0x99 (/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0)

rumqd
\t    7f1a2b3c4d5f _PyEval_EvalFrameDefault (/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0)
"""
EVAL = Frame("_PyEval_EvalFrameDefault", "interpreter")
TURN = Frame("rumq.net.pump.Pump.turn", "rumq")
SEND = Frame("__x64_sys_sendto", "kernel")


def seen() -> Counter[tuple[Frame, ...]]:
    return from_perf(SAMPLES.splitlines())


def test_stacks_of_perf_are_read_from_the_outermost_frame() -> None:
    assert seen() == {(EVAL, TURN): 1, (EVAL, TURN, SEND): 1, (EVAL,): 1}


def test_folded_lines_of_py_spy_are_read() -> None:
    stacks = from_py_spy(["run (rumq/net/pump.py:7);send 3", "", "run (rumq/net/pump.py:7) 1"])
    assert stacks.total() == 4
    assert (Frame("run (rumq/net/pump.py:7)", "rumq"),) in stacks


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("__pyx_pf_4rumq_4mqtt_7kernels_6ingest_2cut", "rumq.mqtt.kernels.ingest.cut"),
        ("__pyx_f_6router_8matching_6routes_10RouteTable_wanted_by", "router.matching.routes.RouteTable.wanted_by"),
        ("_PyType_Lookup+0x1f", "_PyType_Lookup"),
        ("operator new(unsigned long)", "operator new(unsigned long)"),
    ],
)
def test_names_that_cython_made_are_said_as_in_python(name: str, said: str) -> None:
    assert readable(name) == said


@pytest.mark.parametrize(
    ("name", "place", "kind"),
    [
        ("tcp_sendmsg", "[kernel.kallsyms]", "kernel"),
        ("_PyType_Lookup", "/usr/lib/libpython3.11.so.1.0", "interpreter"),
        ("_PyType_Lookup", "/usr/bin/python3.11", "interpreter"),
        ("__pyx_f_4rumq_x", "/somewhere/else.so", "rumq"),
        ("memcpy", "/usr/lib/libc.so.6", "library"),
    ],
)
def test_a_function_belongs_to_the_kernel_the_interpreter_rumq_or_a_library(name: str, place: str, kind: str) -> None:
    assert kind_of(name, place) == kind


def test_shares_count_the_innermost_frame_alone() -> None:
    assert shares(seen()) == {"rumq": 1 / 3, "kernel": 1 / 3, "interpreter": 1 / 3}
    assert hottest(Counter({(EVAL, TURN): 3, (EVAL,): 1}), 1) == [(TURN, 0.75)]


def test_a_box_is_as_wide_as_its_share_and_above_its_caller() -> None:
    assert list(boxes(tree_of(seen()), WIDTH / 3)) == [
        Box(EVAL, 0, 0.0, WIDTH, 3),
        Box(TURN, 1, 0.0, WIDTH * 2 / 3, 2),
        Box(SEND, 2, 0.0, WIDTH / 3, 1),
    ]


def test_the_picture_is_one_svg_with_a_tooltip_for_each_box() -> None:
    root = ET.fromstring(draw(seen(), "500 pairs <rumq>"))
    titles = [one.text for one in root.iter("{http://www.w3.org/2000/svg}title")]
    assert titles == [
        "_PyEval_EvalFrameDefault: 100.0 %", "rumq.net.pump.Pump.turn: 66.7 %", "__x64_sys_sendto: 33.3 %",
    ]  # fmt: skip


def test_without_a_profiler_it_says_what_to_install() -> None:
    with pytest.raises(BenchFault, match=r"linux-perf.*py-spy"):
        installed(path="/nonexistent")


def test_a_scenario_in_which_a_broker_has_nothing_to_do_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["profile", "start"])
    assert refused.value.code == 2
    assert "invalid choice" in capsys.readouterr().err
