"""What an operator has a shard do. Each action says to how many things it applied; events tell of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from hmac import compare_digest

from commitlog import Partition
from router import commands as c
from router.readers.subscriber import Subscriber
from router.readers.subscription import Subscription
from rumq.admin import requests as q
from rumq.admin.operations import UNKNOWN
from rumq.mqtt.reasons import Reason
from rumq.session.protocol import authorization
from rumq.session.protocol.connected import Connected
from rumq.session.protocol.replay_syntax import BadStart, parse_start
from rumq.session.state.registry import Registry
from rumq.session.state.session import Session
from rumq.shards.admin.listings.listings import Answer, Done
from rumq.shards.admin.listings.survey import Survey
from rumq.shards.admin.queries.client_detail import sessions_of
from rumq.shards.admin.queries.parts import AdminLog, AdminLoop, AdminReplays
from rumq.shards.clients.access_gate import BANS_MAX, NAME_BYTES_MAX, AccessGate
from rumq.shards.stats.counters import CountedShard

SESSIONS_A_TURN = 128
TOKEN_BYTES = 8
FILTERS_NAMED_MAX = 10
Later = Callable[[Done], None]


class ClientActions:
    """Who may be connected: bans and drains."""

    def __init__(self, counted: CountedShard, loop: AdminLoop, gate: AccessGate) -> None:
        self._counted, self._loop, self._gate = counted, loop, gate

    def ban(self, asked: q.Ban) -> Later:
        """Ban, then disconnect whoever is named and here, some sessions a turn."""
        if not self._gate.ban(asked.kind, asked.name, asked.seconds):
            raise ValueError(
                f"there are too many bans, {BANS_MAX:,} or {NAME_BYTES_MAX:,} bytes of names: lift some, or wait until "
                "they end"
            )
        if self._counted.index == 0:
            self._loop.events.tell("client.banned", kind=asked.kind, whom=asked.name, seconds=asked.seconds)
        why = "the operator has banned this client"
        told = int(self._counted.index == 0)
        return partial(
            self._dismiss_all,
            lambda session: is_named(session, asked),
            Reason.ADMINISTRATIVE_ACTION,
            why,
            told,
        )

    def unban(self, asked: q.Unban) -> Answer:
        return {"done": int(self._gate.unban(asked.kind, asked.name) and self._counted.index == 0)}

    def drain(self, _: q.Nothing) -> Later:
        self._gate.is_draining = True
        if self._counted.index == 0:
            self._loop.events.tell("broker.draining", sessions=len(self._counted.registry))
        why = "the broker is being drained"
        return partial(self._dismiss_all, lambda session: True, Reason.SERVER_SHUTTING_DOWN, why, 0)

    def undrain(self, _: q.Nothing) -> Answer:
        was, self._gate.is_draining = self._gate.is_draining, False
        if was and self._counted.index == 0:
            self._loop.events.tell("broker.undrained", sessions=len(self._counted.registry))
        return {"done": int(was)}

    def _dismiss_all(
        self, wanted: Callable[[Session], bool], reason: Reason, why: str, done_before: int, done: Done
    ) -> None:
        left = list(self._counted.registry.sessions.values())
        count = done_before

        def go_on() -> None:
            nonlocal count
            some = left[-SESSIONS_A_TURN:]
            del left[-SESSIONS_A_TURN:]
            for session in some:
                if session.link is not None and wanted(session):
                    session.link.dismiss(reason, why)
                    count += 1
            if left:
                self._loop.timers.next_turn(go_on)
            else:
                done({"done": count})

        go_on()


class SubscriptionReset:
    """Subscriptions of one client from another place of the log on."""

    def __init__(self, registry: Registry, loop: AdminLoop, replays: AdminReplays) -> None:
        self._registry, self._loop, self._replays = registry, loop, replays

    def reset(self, asked: q.Reset) -> Answer:
        """Replace subscriptions by replays from another place; those of shared groups have none of their own.

        The rules hold as for a replay that the client asks for: a subscription of which they forbid all stays as it is.
        raises: ValueError for a place that there is not"""
        replays = self._replays
        done, shared = 0, 0
        forbidden: list[str] = []
        sessions = sessions_of(self._registry, asked.client)
        for session in sessions:
            found = [
                (written, subscription)
                for written, subscription in own_subscriptions(session.subscriber)
                if asked.filter in (None, written)
            ]
            shared += sum(asked.filter in (None, written) for written in session.subscriber.shares)
            try:
                starts = [
                    parse_start(asked.start, subscription.topic_filter, self._loop.clock.now_us)
                    for _, subscription in found
                ]
            except BadStart as fault:
                raise ValueError(str(fault)) from None
            replays.settle()
            client = session.link.client if isinstance(session.link, Connected) else None
            before = done
            for (written, subscription), start in zip(found, starts, strict=True):
                try:
                    permit = authorization.replay_permit(session, client, subscription.topic_filter)
                except authorization.FilterForbidden:
                    forbidden.append(written)
                    continue
                wanted = replace(subscription, permit=permit)
                replays.commands.put(c.Replay(session.subscriber, written, wanted, start))
                session.own_filters().add(written, is_replay=True)
                replays.recorder.subscribed(session, written)
                done += 1
            if done > before:
                self._loop.events.tell(
                    "session.reset", client_id=session.client_id, start=asked.start, filters=done - before
                )
        why = ["members of a shared group have no place of their own"] if shared else []
        if forbidden:
            named = ", ".join(forbidden[:FILTERS_NAMED_MAX])
            why.append(f"the rules forbid the client to replay {named}: those subscriptions stay as they are")
        answer: Answer = {"done": done, "why": "; ".join(why)}
        return answer if sessions else {**answer, UNKNOWN: True}


class PartitionActions:
    """Segments of the partitions that this shard owns."""

    def __init__(self, own: Sequence[Partition], log: AdminLog) -> None:
        self._own, self._log = own, log

    def seal(self, asked: q.OnePartition) -> Answer:
        found = self._partition(asked)
        if found is None:
            return {"done": 0, UNKNOWN: True}
        self._log.commit.roll(found.index)
        return {"done": 1}

    def trim(self, asked: q.Trim) -> Answer:
        """What retained messages need stays; readers that lose records are counted in the ledger."""
        found = self._partition(asked)
        if found is None:
            return {"done": 0, UNKNOWN: True}
        keep = self._log.bounds.retained(found.index)
        below = asked.below_lsn if keep is None else min(asked.below_lsn, keep)
        removal = found.take_removal(below)
        if removal is None:
            return {
                "done": 0,
                "why": "no finished segment has all of its records below, or one is being removed",
            }
        self._log.removal.carry_out(found, removal, "operator")
        return {"done": len(removal.paths)}

    def _partition(self, asked: q.OnePartition) -> Partition | None:
        return next((p for p in self._own if (p.stream, p.number) == (asked.stream, asked.partition)), None)


class BrokerActions:
    """What the broker's main process is asked for. shards: how many there are, of which shard 0 signals"""

    def __init__(self, counted: CountedShard, loop: AdminLoop, shards: int) -> None:
        self._counted, self._loop, self._shards = counted, loop, shards
        self._prepared: tuple[str, float] | None = None  # token of a shutdown, and until when it is good

    def reload(self, _: q.Nothing) -> Answer:
        return self._signal(signal.SIGHUP)

    def prepare(self, asked: q.Prepare) -> Later:
        """A token for `shutdown`, by shard 0; a later one replaces it. Changes nothing else."""
        shard = self._counted
        token, seconds = "", 0.0
        if shard.index == 0:
            token, seconds = os.urandom(TOKEN_BYTES).hex(), asked.seconds
            self._prepared = token, self._loop.clock.monotonic + seconds
        pending = sum(each.pending_bytes for each in shard.store.own)
        answer = {"token": token, "seconds": seconds, "pending_bytes": pending}
        return Survey(shard.registry, self._loop.timers).ask(
            lambda connected: {**answer, "connected": connected.total()}
        )

    def shutdown(self, asked: q.Shutdown) -> Answer:
        """raises: ValueError for a token that is not the one of `prepare`"""
        if asked.token is not None and self._counted.index == 0:
            prepared, self._prepared = self._prepared, None
            if prepared is None or not compare_digest(prepared[0].encode(), asked.token.encode()):
                raise ValueError("the token is not that of the last `prepare`: nothing was stopped")
            if self._loop.clock.monotonic > prepared[1]:
                raise ValueError("the token is too old: `prepare` again; nothing was stopped")
        return self._signal(signal.SIGTERM if asked.graceful else signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> Answer:
        """Of the broker's main process, by shard 0; after the answer is on its way."""
        if self._counted.index:
            return {"done": 0}
        pid = os.getpid() if self._shards == 1 else os.getppid()
        self._loop.timers.later(0.05, lambda: os.kill(pid, number))
        return {"done": 1}


def is_named(session: Session, asked: q.Ban) -> bool:
    if asked.kind == "client":
        return session.client_id == asked.name
    if asked.kind == "user":
        return session.owner is not None and session.owner.user == asked.name
    assert session.link is not None
    peer: str = session.link.transport.peer
    return (peer.rpartition(":")[0] or peer) == asked.name


def own_subscriptions(subscriber: Subscriber) -> list[tuple[str, Subscription]]:
    """(filter as written, subscription) of those with a place of their own."""
    found = list(subscriber.main_subscriptions.items())
    for readers in (subscriber.late, subscriber.replays):
        for written, reader in readers.items():
            found += [(written, subscription) for subscription in reader.group.subscriptions]
    return found
