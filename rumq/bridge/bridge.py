"""A bridge: two sessions, one at each broker, and a `PacketRelay` for each direction between their connections.

Either both sides are connected or none is read from: so what one broker sends again, the other one gets again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import trio

from rumq.bridge.counts import IN, OUT, BridgeCounts
from rumq.bridge.link import BackToPreferred, Link
from rumq.bridge.pairing import Pairing
from rumq.bridge.relay import PacketRelay
from rumq.bridge.remote_addresses import RemoteAddresses
from rumq.bridge.side import (
    EXACTLY_ONCE,
    HOLD,
    LOCAL,
    OTHER,
    REMOTE,
    SIDES,
    Side,
    SideConnection,
    leave,
    open_side,
    release_ids,
    subscribe,
)
from rumq.bridge.topic_rules import TopicMap, TopicRule
from rumq.client.session.back_off import BackOff, Reconnect
from rumq.errors import ClientError, ConnectionLost
from rumq.mqtt.packets import Publish
from rumq.mqtt.reasons import Reason

RELEASE_SECONDS_MAX = 120.0  # for all packet ids of a session
GONE, THERE = b"0", b"1"  # payloads of notifications; the first one is the will
SHOWN_VERSIONS = {5: "5.0", 4: "3.1.1"}
DIRECTION = {LOCAL: OUT, REMOTE: IN}  # of what comes from a side

Tell = Callable[..., None]
StillOurs = Callable[[], Awaitable[None]]  # raises: ConnectionLost, if another process may have taken the bridge over


async def always_ours() -> None:
    """Of a broker alone: no other process runs its bridges."""


@dataclass(frozen=True, slots=True)
class BridgeRules:
    """bytes_per_second_max: of payloads, each way, 0: no limit; inflight_max: messages without an answer, each way

    exactly_once: between rumq brokers QoS 1 is carried as QoS 2"""

    name: str
    topics: tuple[TopicRule, ...]
    inflight_max: int = 100
    bytes_per_second_max: int = 0
    retry_seconds_max: float = 60.0
    exactly_once: bool = True


class RunningBridge:
    """Runs until it is cancelled, however often it is refused."""

    def __init__(
        self, rules: BridgeRules, local: Side, remotes: RemoteAddresses, pairing: Pairing, tell: Tell,
        now_us: Callable[[], int], still_ours: StillOurs = always_ours,
    ) -> None:  # fmt: skip
        """now_us: µs since 1970, for people"""
        self.rules, self.counts, self._now_us = rules, BridgeCounts(), now_us
        self._local, self._remotes, self._pairing, self._tell = local, remotes, pairing, tell
        self._still_ours = still_ours
        remotes.note_paired_before(pairing.remote)
        # Sides, and their addresses, whose session has the filters, since this process began.
        self._assured: set[tuple[str, str]] = set()
        # True once an attempt failed before both were ever connected: retained messages wait in the memory of a local
        # shard, which may have died since.
        self._may_have_died = False
        self._windows = dict.fromkeys(SIDES, rules.inflight_max)  # side -> messages that it takes without an answer
        # Sides that are asked to carry QoS 1 as QoS 2: the local one once the remote one has said that it does.
        self._asked = {REMOTE: rules.exactly_once, LOCAL: False}
        self._lost: set[str] = set()  # sides whose session was lost, and that the other side's messages may have
        self._relays_since = 0.0  # trio's clock: since when both were connected the last time
        self._topics = {side: TopicMap(rules.topics, DIRECTION[side]) for side in SIDES}

    async def run(self) -> None:
        policy = Reconnect(first_seconds=0.2, seconds_max=self.rules.retry_seconds_max)
        back_off, said = BackOff(policy), ""
        while True:
            bug = {}
            try:
                await self._connect_and_relay()
            except BackToPreferred as fault:
                self._remotes.note_returned()
                why = str(fault)
            except (ClientError, OSError) as fault:
                why = str(fault)
            except Exception as fault:  # ours: bridges to other brokers go on
                why, bug = f"a bug: {type(fault_in(fault)).__name__}", {"exc_info": fault}
            self._may_have_died = not self._pairing.remote
            was_up = self.counts.is_up
            self.counts.note_failed(self._now_us(), why)
            if was_up:
                self._remotes.note_lost()
                back_off.connected_for(trio.current_time() - self._relays_since)
            elif self._remotes.take_untried():
                continue
            pause = back_off.maybe_pause() or 0.0
            if was_up or why != said:  # of days without the other side, one event
                self._tell("bridge.lost", name=self.rules.name, why=why, retry_seconds=round(pause, 1), **bug)
                said = why
            await trio.sleep(pause)

    async def _connect_and_relay(self) -> None:
        """raises: ClientError, OSError; it ends in no other way"""
        await self._still_ours()
        # The local one first: it collects while the remote side is away.
        for side in SIDES:
            if (side, self._side(side).address) not in self._assured:
                await self._assure(side)
        connections: dict[str, SideConnection] = {}
        try:
            connections[REMOTE] = await self._open(REMOTE)
            if self._may_have_died:
                await self._assure(LOCAL)  # what waits there still comes once
            connections[LOCAL] = await self._open(LOCAL)
            await self._check_sessions(connections)
            await self._pair(connections)
            await self._relay(connections)
        finally:
            # Without DISCONNECT: it would end a packet of which only the beginning was sent.
            with trio.CancelScope(shield=True):
                for each in connections.values():
                    await each.stream.close()

    async def _open(self, side: str) -> SideConnection:
        """The source is told no more than its target takes at once, MQTT 5.0, 4.9; the remote side is opened first."""
        told = min(self.rules.inflight_max, self._windows[LOCAL])  # the remote side, as the source
        connection = await self._opened(side, min(self.rules.inflight_max, self._windows[OTHER[side]]))
        self._note_opened(side, connection)
        if side == LOCAL and connection.receive_maximum < told:
            await drop(connection)
            raise ConnectionLost("the local broker takes fewer messages at once than before")
        return connection

    async def _assure(self, side: str) -> None:
        """Let there be a session with the filters. raises: ClientError, OSError"""
        connection = await self._opened(side, self.rules.inflight_max, HOLD)
        try:
            self._note_opened(side, connection)
            await self._check_ours({side: connection})
            # Here retained messages wait in memory until both were connected for the first time.
            is_waiting = connection.connack.session_present and side == LOCAL and not self._pairing.remote
            try:
                await self._subscribe(side, connection, retained_again=is_waiting)
            except ClientError:
                if side == REMOTE:
                    self._remotes.note_failed()
                raise
            await leave(connection)
        finally:
            with trio.CancelScope(shield=True):
                await connection.stream.close()
        self._may_have_died = self._may_have_died and side != LOCAL
        self._assured.add((side, self._side(side).address))

    def _side(self, side: str) -> Side:
        return self._local if side == LOCAL else self._remotes.side

    async def _opened(self, side: str, receive_maximum: int, *asked: str) -> SideConnection:
        """raises: ConnectionLost, Refused; then the next address is tried"""
        self.counts.address = self._remotes.side.address
        try:
            once = (EXACTLY_ONCE,) if self._asked[side] else ()
            connection = await open_side(self._side(side), receive_maximum, *once, *asked)
        except (ClientError, OSError):
            if side == REMOTE:
                self._remotes.note_failed()
            raise
        if side == REMOTE:
            self._remotes.note_opened(connection.version)
            self._asked[LOCAL] = connection.is_exactly_once
        elif self._asked[LOCAL] and not connection.is_exactly_once:
            self._asked = dict.fromkeys(SIDES, False)
            await drop(connection)
            raise ConnectionLost("the local broker takes no messages of QoS 2")
        return connection

    def _note_opened(self, side: str, connection: SideConnection) -> None:
        self._windows[side] = connection.receive_maximum
        for lost in connection.lost:
            self._tell("bridge.gap", name=self.rules.name, side=side, lost=lost)

    async def _subscribe(self, side: str, connection: SideConnection, *, retained_again: bool) -> None:
        filters = sorted(self._side(side).filters)
        before = self._pairing.filters.get(side, [])
        await subscribe(connection, self._side(side), before, retained_again=retained_again)
        await self._pairing.note_filters(side, filters)

    async def _check_sessions(self, connections: dict[str, SideConnection]) -> None:
        """raises: ConnectionLost where one is gone: then it has no filters, and begins anew"""
        await self._check_ours(connections)
        gone = [side for side, each in connections.items() if not each.connack.session_present]
        for side in gone:
            self._assured.discard((side, self._side(side).address))
        if gone:
            raise ConnectionLost(f"the session at the {gone[0]} broker is gone")

    async def _check_ours(self, connections: dict[str, SideConnection]) -> None:
        """Before something is read from them or sent: whoever runs the bridge after us has opened its own ones later,
        and these have ended by then. A session that is new is noted.

        raises: ClientError, OSError. A new session is ended then: whoever is next has to see that it is new"""
        new = {side: each for side, each in connections.items() if not each.connack.session_present}
        try:
            await self._still_ours()
            for side in new:
                await self._pairing.note_new(side)
        except BaseException:  # also where it was cancelled
            with trio.CancelScope(shield=True):
                for each in new.values():  # on this connection: another one would end a successor's session
                    await leave(each, session_expiry=0)
            raise

    async def _pair(self, connections: dict[str, SideConnection]) -> None:
        """Before the first message behind a session that is new. raises: ClientError, OSError"""
        remote = connections[REMOTE].broker_id or self._remotes.side.address
        self._lost = {side for side in self._pairing.new if OTHER[side] not in self._pairing.new}
        if self._pairing.remote not in ("", remote):
            # Another broker, with ids of another time, and which does not have the ids of the last one.
            self._lost = set(SIDES)
        is_exactly_once, released = connections[REMOTE].is_exactly_once, set(self._lost)
        if self._pairing.exactly_once and self._asked[REMOTE] and not is_exactly_once:
            # An older version sends again with QoS 1 what went out with QoS 2: PUBREL for these will not come.
            released.add(REMOTE)
            self._lost.add(LOCAL)
        for side in sorted(released):
            self._tell("bridge.doubtful", name=self.rules.name, side=side)
            with trio.move_on_after(RELEASE_SECONDS_MAX) as scope:
                await release_ids(connections[OTHER[side]])
            if scope.cancelled_caught:
                raise ConnectionLost(f"the {OTHER[side]} broker does not answer PUBREL")
        await self._pairing.note_paired(remote, exactly_once=is_exactly_once)

    # --- connected

    async def _relay(self, connections: dict[str, SideConnection]) -> None:
        """raises: ClientError, once one of the connections has ended"""
        relays = {side: self._relay_from(side, connections) for side in SIDES}
        keep_alives = {side: self._keep_alive_seconds(side, each) for side, each in connections.items()}
        link = Link(
            connections, relays, keep_alives, self.rules.bytes_per_second_max, self._remotes.maybe_preferred,
            self._remotes.look_seconds,
        )  # fmt: skip
        remote, version = connections[REMOTE].broker_id, SHOWN_VERSIONS[connections[REMOTE].version]
        self._relays_since = trio.current_time()
        self.counts.note_connected(self._now_us(), remote, version)
        self._remotes.note_used()
        self._tell(
            "bridge.connected", name=self.rules.name, remote=remote or "not a rumq broker",
            address=self._remotes.side.address, mqtt=version, exactly_once=connections[REMOTE].is_exactly_once,
        )  # fmt: skip
        self._notify(connections)
        await link.run()

    def _notify(self, connections: dict[str, SideConnection]) -> None:
        """Say that the bridge is there, where a will is to say that it is not. QoS 0: packet ids are the sources'."""
        for side, connection in connections.items():
            if (will := self._side(side).options.will) is not None:
                connection.stream.send(Publish(will.topic, THERE, retain=True))

    def _relay_from(self, side: str, connections: dict[str, SideConnection]) -> PacketRelay:
        direction, target = DIRECTION[side], OTHER[side]
        told: set[Reason] = set()

        def refused(topic: str, reason: Reason, text: str) -> None:
            if reason not in told:  # the others are counted
                told.add(reason)
                self._tell("bridge.refused", name=self.rules.name, direction=direction, topic=topic, why=text)

        return PacketRelay(
            self._topics[side], connections[side].broker_id,
            connections[target].as_target(was_lost=target in self._lost), self.counts.relayed[direction], refused,
        )  # fmt: skip

    def _keep_alive_seconds(self, side: str, connection: SideConnection) -> float:
        """The server's 0, or its hour, is how long it waits for us (MQTT 5.0, 3.2.2.3.14), not how long we wait."""
        own = self._side(side).options.keep_alive
        said = connection.connack.properties.get("server_keep_alive", own)
        return min(filter(None, (own, said)), default=0)


async def drop(connection: SideConnection) -> None:
    """Close it before anything was noted of it. A session that is new ends: later nobody would see that it was."""
    if not connection.connack.session_present:
        await leave(connection, session_expiry=0)
    await connection.stream.close()


def fault_in(fault: BaseException) -> BaseException:
    """The first fault of those that tasks ended with."""
    while isinstance(fault, BaseExceptionGroup):
        fault = fault.exceptions[0]
    return fault
