"""What a broker may have done, judged from what its clients did and saw.

Written from docs/explanation/guarantees.md and MQTT 5.0, apart from the broker: it knows messages and
sessions, and no shard but as something that crashed.

`log`: everything that was kept, each topic's messages in their order; `retained`: topic -> message."""

from collections import Counter, defaultdict

from rumq.mqtt.topics import matches
from tests.simulation.history import Delivery, History, Message, Session, Subscribed


class Broken(AssertionError):
    """A promise was not kept."""


def judge(history: History, log: list[Delivery], retained: dict[str, int], shards: int) -> None:
    """raises: Broken"""
    if history.faults:
        raise Broken(history.faults[0])
    judge_log(history, log)
    judge_retained(history, log, retained)
    places: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for place, seen in enumerate(log):
        places[seen.topic][seen.message].append(place)
    for session in history.sessions:
        judge_session(history, session, places)
    judge_shares(history)


def require(condition: bool, what: str) -> None:
    if not condition:
        raise Broken(what)


# The log


def judge_log(history: History, log: list[Delivery]) -> None:
    """Everything acknowledged is there, QoS 2 once, each publisher's messages of a topic in order."""
    times = Counter(seen.message for seen in log)
    for message in history.messages:
        count = times[message.number]
        if message.is_will:
            judge_will(history, message, count)
            continue
        require(not (message.acked is not None and not count), f"acknowledged and lost: {message}")
        most = 1 + message.repeats if message.qos == 1 else 1
        again = message.qos == 0 and message.retain and bool(history.crashes)  # what is retained must not be missing
        require(count <= most or again, f"{count} times in the log: {message}")
    last: dict[tuple[str, str], int] = {}
    known: set[int] = set()
    for seen in log:
        message = history.messages[seen.message]
        require(message.topic == seen.topic, f"{message} came as {seen}")
        if seen.message in known or message.is_will:
            continue
        known.add(seen.message)
        key = (message.publisher, message.topic)
        require(last.get(key, -1) < message.number, f"out of order in the log: {message}")
        last[key] = message.number


def judge_will(history: History, will: Message, count: int) -> None:
    """A will is published once if its client was lost, never if it said DISCONNECT."""
    connection = next(c for c in history.connections if c.number == will.connection)
    crashed = any(step >= connection.asked for step in history.crashes)
    require(count <= 1 or crashed, f"published {count} times: {will} of {connection}")
    if connection.granted is None or crashed or not connection.was_heard:
        return
    if connection.how == "disconnect" or connection.over is None:
        require(count == 0, f"published though its client was not lost: {will} of {connection}")
    elif not connection.delay:
        require(count == 1, f"not published: {will} of {connection}")


def judge_retained(history: History, log: list[Delivery], retained: dict[str, int]) -> None:
    """What is retained is the last in the order of the log."""
    last: dict[str, int] = {}
    for seen in log:
        if seen.retain:
            last[seen.topic] = seen.message
    require(retained == last, f"retained is {retained}, the last of each topic are {last}")


# Sessions


def judge_session(history: History, session: Session, places: dict[str, dict[int, list[int]]]) -> None:
    plain = [s for s in session.subscriptions if not s.share and not s.topic_filter.startswith("$log/")]
    shares = [s for s in session.subscriptions if s.share]
    if len(plain) + len(shares) != len(session.subscriptions):
        return  # the witness of the log
    fresh: Counter[int] = Counter()  # deliveries that do not say that they may have come before
    total: Counter[int] = Counter()
    for seen in session.deliveries:
        message = history.messages[seen.message]
        require(message.topic == seen.topic, f"{message} came as {seen}")
        wanted = [s for s in (*plain, *shares) if may(s, session, message, seen, crashed=bool(history.crashes))]
        require(bool(wanted), f"{session.client_id} never subscribed to {message}: {seen}")
        # Of several subscriptions the highest counts, also of those that want nothing of their own client.
        granted = max(s.qos for s in (*plain, *shares) if matches(s.plain, message.topic))
        require(seen.qos <= min(granted, message.qos), f"{session.client_id} got {seen} of {message}")
        require(not seen.retain or message.retain, f"{session.client_id} got {seen} of {message}")
        if not seen.retain:
            total[seen.message] += 1
            fresh[seen.message] += not seen.dup
    for number, count in total.items():
        message = history.messages[number]
        wanted = [s for s in (*plain, *shares) if matches(s.plain, message.topic)]
        most = len(wanted) * (1 + (message.repeats if message.qos == 1 else 0))
        # What is retained must not be missing; and what a share gave out with QoS 0 is not noted.
        # What a share gave out with QoS 2 is known unless both its home and the shard of its member have died.
        twice = len(history.crashes) > 1
        again = any(s.share and (twice or min(s.qos, message.qos) < 2) for s in wanted)
        again = bool(history.crashes) and (again or (message.qos == 0 and message.retain))
        require(
            message.is_will or again or fresh[number] <= most,
            f"{session.client_id} got {count} times: {message}",
        )
        if message.qos == 2 and min(s.qos for s in wanted) == 2 and not message.is_will and not again:
            require(count <= most, f"{session.client_id} got {count} times with QoS 2: {message}")
    judge_musts(history, session, plain, {seen.message for seen in session.deliveries})
    if len(session.subscriptions) == 1 and plain:
        judge_order(history, session, plain[0], places)


def may(wish: Subscribed, session: Session, message: Message, seen: Delivery, *, crashed: bool) -> bool:
    """Whether a message may have come by this subscription."""
    if not matches(wish.plain, message.topic) or wish.asked > seen.step:
        return False
    own = message.publisher == session.client_id and not seen.retain and not message.is_will
    if wish.no_local and own and not crashed:
        return False  # after a crash the broker does not know all publishers
    return wish.gone is None or message.is_will or message.sent <= wish.gone or session.ending is not None


def judge_musts(history: History, session: Session, plain: list[Subscribed], had: set[int]) -> None:
    """What came after SUBACK and was acknowledged comes, if the session lasts; in a calm connection QoS 0 too."""
    if session.ending is not None:
        return
    calm = not history.crashes and not session.torn
    if not session.lasting and history.crashes:
        return
    for wish in plain:
        if wish.granted is None or wish.leaving is not None:
            continue
        for message in history.messages:
            if message.is_will or message.sent <= wish.granted or not matches(wish.plain, message.topic):
                continue
            if wish.no_local and message.publisher == session.client_id:
                continue
            sure = message.acked is not None and wish.qos > 0
            if calm and not sure:
                sure = was_taken(history, message)
            require(not sure or message.number in had, f"{session.client_id} with {wish} never got {message}")


def was_taken(history: History, message: Message) -> bool:
    """Whether the broker has certainly read it: its connection lasts."""
    connection = next(c for c in history.connections if c.number == message.connection)
    return connection.over is None and connection.granted is not None


def judge_order(history: History, session: Session, wish: Subscribed, places: dict[str, dict[int, list[int]]]) -> None:
    """First deliveries of a topic come in the order of the log."""
    known: set[int] = set()
    last: dict[str, int] = {}
    for seen in session.deliveries:
        where = places[seen.topic].get(seen.message)
        if seen.retain or seen.dup or where is None or seen.message in known:
            known.add(seen.message)
            continue
        known.add(seen.message)
        if history.crashes and min(history.messages[seen.message].qos, wish.qos) == 0:
            continue
        after = [place for place in where if place > last.get(seen.topic, -1)]
        require(bool(after), f"{session.client_id} got {history.messages[seen.message]} out of order")
        last[seen.topic] = after[0]


# Shared subscriptions


def judge_shares(history: History) -> None:
    """Each message of a share goes to a member, and without crashes and losses to one alone."""
    members: dict[str, list[tuple[Session, Subscribed]]] = defaultdict(list)
    for session in history.sessions:
        for wish in session.subscriptions:
            if wish.share:
                members[wish.topic_filter].append((session, wish))
    for key, all_members in members.items():
        sessions = [session for session, _ in all_members]
        others = any(
            matches(wish.plain, topic) and wish.topic_filter != key
            for session in sessions
            for wish in session.subscriptions
            for topic in {message.topic for message in history.messages}
            if matches(all_members[0][1].plain, topic)
        )
        had = {seen.message for session in sessions for seen in session.deliveries}
        fresh: Counter[int] = Counter()
        for session in sessions:
            fresh.update(seen.message for seen in session.deliveries if not seen.dup and not seen.retain)
        lasts = [
            wish
            for session, wish in all_members
            if session.lasting and session.ending is None and wish.leaving is None and wish.granted is not None
        ]
        calm = not history.crashes and all(
            not session.torn and session.ending is None and wish.leaving is None for session, wish in all_members
        )
        for message in history.messages:
            if message.is_will or not matches(all_members[0][1].plain, message.topic):
                continue
            if any(message.sent > (wish.granted or 0) for wish in lasts) and min(wish.qos for _, wish in all_members):
                # MQTT-4.8.2-5: what was begun with QoS 2 ends with its member's session.
                begun = message.qos == 2 and any(
                    wish.qos == 2 and (not session.lasting or session.ending is not None)
                    for session, wish in all_members
                )
                require(message.acked is None or message.number in had or begun, f"{key}: nobody got {message}")
            if calm and not others:
                most = 1 + (message.repeats if message.qos == 1 else 0)
                require(fresh[message.number] <= most, f"{key}: {fresh[message.number]} got {message}")
