"""A parked connection is answered as any other, byte for byte; only later, by less than two ticks."""

import math
from collections.abc import Sequence
from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from commitlog import Chunk
from rumq.kafka import connection
from rumq.kafka.parked import empty_fetch, parked_connections, shared_deadlines
from rumq.kafka.parked.empty_fetch import BYTES_MAX
from rumq.kafka.protocol.frames import parse_request
from tests.kafka.log.test_tail import Log
from tests.kafka.parked.sessions import END, IDLE_SECONDS, P0, P1, Act, Session, chunks_of, fetch_frame, run_session
from tests.kafka.wire_client import frame_of

TICK_SECONDS = 1 / shared_deadlines.TICKS_PER_SECOND
MAIN, TWO, BOTH = [("main", 0, END)], [("two", 0, END)], [("main", 0, END), ("two", 1, END)]
FETCHES = [
    fetch_frame(MAIN, 200),
    fetch_frame(BOTH, 500),
    fetch_frame(BOTH[::-1], 500),
    fetch_frame(MAIN, 500, min_bytes=1 << 19),
    fetch_frame(MAIN, 50),  # too short a wait to be parked
    fetch_frame([("main", 0, END + 1)], 200),
    fetch_frame([("main", 0, 0)], 200),
    fetch_frame([("nothing", 0, END)], 200),
]
OTHERS = [frame_of("ApiVersions", 0, {}), frame_of("Metadata", 1, {"topics": [{"name": "main"}]}), b"\0\0\0\3abc"]
STEP_SECONDS, RESIDUE_SECONDS = 0.01, 1e-5  # acts are at moments of their own: waits are whole milliseconds


@pytest.fixture(scope="module")
def chunks(tmp_path_factory: pytest.TempPathFactory) -> list[Chunk]:
    log = Log(tmp_path_factory.mktemp("sessions"))
    for n in range(0, 40, 2):
        log.write(b"%d" % n, b"%d" % (n + 1))
    found = chunks_of(log)
    log.store.close()
    return found


def ask(frames: Sequence[bytes], cut: int, session: Session) -> None:
    """Some requests at once. cut: of the last one so many bytes are not sent, or were sent already if it is negative"""
    session.send(b"".join(session.numbered(each) for each in frames)[: -cut or None])


def send(data: bytes, session: Session) -> None:
    session.send(data)


def write(name: str, records: int, session: Session) -> None:
    session.log.write(name, records)


def retain(name: str, first: int, session: Session) -> None:
    session.log.retain(name, first)


def rules_change(session: Session) -> None:
    session.scope.cancel()


def log_breaks(session: Session) -> None:
    session.log.is_broken = True


ACTS: st.SearchStrategy[list[Act]] = st.one_of(
    # The same again, as consumers do: mostly this one.
    st.builds(lambda one, times: [partial(ask, [one], 0)] * times, st.sampled_from(FETCHES[:4]), st.integers(1, 12)),
    st.builds(lambda some: [partial(ask, some, 0)], st.lists(st.sampled_from(FETCHES + OTHERS[:2]), max_size=3)),
    st.builds(lambda one: [partial(ask, [one], 9), partial(send, one[-9:])], st.sampled_from(FETCHES)),
    st.builds(lambda one: [partial(ask, [one], 0)], st.sampled_from(OTHERS)),
    st.builds(lambda name, n: [partial(write, name, n)], st.sampled_from([P0, P1]), st.integers(1, 3)),
    st.builds(lambda name, n: [partial(retain, name, n)], st.sampled_from([P0, P1]), st.integers(1, 6)),
    st.sampled_from([[Session.stop_reading], [Session.read_again]]),
    st.sampled_from([[rules_change], [Session.leave], [Session.stop_sending]]),
)
SCRIPTS = st.lists(st.tuples(st.sampled_from([0.0, 0.01, 0.2, 0.5, 0.51]), ACTS), max_size=12)


def timed(script: Sequence[tuple[float, list[Act]]]) -> list[tuple[float, Act]]:
    """Each of the acts of a step comes after the step's pause."""
    at, found = 0.0, list[tuple[float, Act]]()
    for pause, acts in script:
        for act in acts:
            at += pause + STEP_SECONDS
            found.append((at + (len(found) + 1) * RESIDUE_SECONDS, act))
    return [*found, (at + 2.0, Session.read_again), (at + 4.0, lambda session: None)]


AGAIN = [(0.5, [partial(ask, [FETCHES[0]], 0)])] * 2  # from then on it is parked, and its question waits


@settings(max_examples=150, deadline=None)
@given(SCRIPTS)
@example([(0.0, [partial(retain, P0, 3)]), *AGAIN])
@example([(0.0, [partial(ask, [FETCHES[0]], 0)]), (0.0, [Session.stop_sending])])
@example([(0.5, [partial(ask, [FETCHES[1]], 0)]), *AGAIN, (0.0, [partial(write, P1, 1)]), *AGAIN])
@example([(0.0, [partial(ask, [OTHERS[0], FETCHES[0]], 0), partial(write, P0, 2)]), *AGAIN])
@example([(0.0, [Session.stop_reading]), *AGAIN * 80, (1.0, [Session.read_again]), *AGAIN])
@example([(0.0, [Session.stop_reading, Session.fill]), *AGAIN, (IDLE_SECONDS, [Session.read_again]), *AGAIN])
def test_a_session_hears_the_same_as_one_that_is_never_parked(
    chunks: list[Chunk], script: list[tuple[float, list[Act]]]
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        # Ticks so near to each other that no act of a script comes between a deadline and its tick.
        for module in (shared_deadlines, parked_connections):
            patched.setattr(module, "TICKS_PER_SECOND", 1e7)
        acts = timed([*AGAIN, *script])
        plain = run_session(partial(Session, chunks, parks=False), acts)
        found = run_session(partial(Session, chunks, parks=True), acts)
    assert found.heard == plain.heard and found.end == plain.end
    assert found.times == pytest.approx(plain.times, abs=1e-5)
    # One that was never answered is not counted.
    assert plain.door.figures.fetches - found.door.figures.fetches in (0, 1)
    assert not found.door.bounds.waiting.held
    assert found.parked is not None and len(found.parked) == 0


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Requests that were not answered at a tick."""
    found: list[bytes] = []
    monkeypatch.setattr(connection, "parse_request", lambda frame: [found.append(frame), parse_request(frame)][1])
    return found


def repeated(
    chunks: list[Chunk], frames: Sequence[bytes], *more: tuple[float, Act], expires_s: float | None = None
) -> Session:
    """One that asks each of some requests in turn, 64 times, and then what is said."""
    script = [(0.6 * n, partial(ask, [frames[n % len(frames)]], 0)) for n in range(1, 65)]
    script += [(39 + at, act) for at, act in more]
    session = partial(Session, chunks, parks=True, expires_s=expires_s)
    return run_session(session, [*script, (200.0, lambda session: None)])


def test_an_answer_is_late_by_less_than_two_ticks_and_never_early(chunks: list[Chunk], parsed: list[bytes]) -> None:
    times = repeated(chunks, FETCHES[:1]).times
    assert len(parsed) == 1 and len(times) == 64
    for n, when in enumerate(times, 1):
        assert -1e-6 < when - (0.6 * n + 0.2) < 2 * TICK_SECONDS


def test_a_client_that_names_its_partitions_in_turn_is_parked_with_all_orders(
    chunks: list[Chunk], parsed: list[bytes]
) -> None:
    """librdkafka begins with another one each time."""
    repeated(chunks, FETCHES[:3])
    assert len(parsed) == 3


def test_a_connection_does_not_know_all_that_it_asks(
    chunks: list[Chunk], parsed: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(empty_fetch, "BYTES_MAX", BYTES_MAX // 16)
    repeated(chunks, FETCHES[:3])
    assert len(parsed) == 64


def test_who_asks_nothing_is_left_as_soon_as_any_other(chunks: list[Chunk]) -> None:
    late: list[str] = []
    left_at = 0.6 * 64 + 0.2 + IDLE_SECONDS
    found = repeated(chunks, FETCHES[:1], (left_at - 39, lambda here: late.append(here.end)),
                     (left_at - 39 + 1.1, lambda here: late.append(here.end)))  # fmt: skip
    assert late == ["", "left"] and found.parked is not None and len(found.parked) == 0


@pytest.mark.parametrize("leave", [Session.leave, partial(ask, OTHERS[:1], 0)])
def test_who_goes_on_by_itself_leaves_nothing_at_the_deadline_of_its_question(chunks: list[Chunk], leave: Act) -> None:
    question = partial(ask, [fetch_frame(MAIN, 30_000)], 0)
    acts = [(1.0, question), (32.0, question), (33.0, leave), (34.0, partial(write, P0, 1)), (35.0, lambda here: None)]
    found = run_session(partial(Session, chunks, parks=True), acts)
    assert found.parked is not None
    waiting = found.parked._deadlines.take(math.inf)
    assert [one.fetches.size for one in waiting] == [0]


@pytest.mark.parametrize(("expires_s", "answers"), [(20 * 0.6 + 0.1, 20), (20 * 0.6 + 0.4, 20)])
def test_who_does_not_log_in_again_is_left(expires_s: float, answers: int, chunks: list[Chunk]) -> None:
    """After the answer to what was asked before, or at the next request."""
    found = repeated(chunks, FETCHES[:1], expires_s=expires_s)
    assert found.end == "KafkaFault: its token has expired" and len(found.times) == answers


def test_who_waits_for_a_log_that_cannot_be_read_any_more_is_told(chunks: list[Chunk]) -> None:
    found = repeated(chunks, FETCHES[:1], (0.0, log_breaks), (1.5, partial(ask, FETCHES[:1], 0)))
    assert found.end == "OSError: [Errno 5] broken"


def files_are_slow(session: Session) -> None:
    session.log.look_seconds = 0.5


def test_who_is_parked_hears_of_a_record_without_a_look_at_the_files(chunks: list[Chunk]) -> None:
    """As who is not: it looks when it is asked, not when there is something."""
    asked = (0.0, partial(ask, FETCHES[1:2], 0))
    found = repeated(chunks, FETCHES[1:2], asked, (0.05, files_are_slow), (0.1, partial(write, P0, 1)))
    assert found.times[-1] == pytest.approx(39.1, abs=1e-3)


def test_the_log_is_looked_at_while_clients_are_parked(chunks: list[Chunk]) -> None:
    """Each second, as retention removes what it begins with."""
    assert repeated(chunks, FETCHES[:1]).log.looks == pytest.approx(0.6 * 64 + IDLE_SECONDS, abs=3)
