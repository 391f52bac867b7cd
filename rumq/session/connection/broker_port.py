"""What a connection needs of the broker it talks to: the seam between the protocol and the shard's driver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from router.commands import CommandQueue
from rumq.mqtt.kernels.batch import Batch
from rumq.mqtt.kernels.topics import TopicTable
from rumq.session.flow_control.limits import Limits
from rumq.session.journal.recorder import JournalRecorder
from rumq.session.state.drop_counters import DropCounters
from rumq.session.state.registry import Registry
from rumq.session.state.shard_totals import ShardTotals


class BrokerPort(Protocol):
    """Time, numbers and places; everything is a plain call that cannot wait.

    topics: topic -> partition << 32 | topic id, of every topic known here
    batches: what this turn published, one a partition
    commands: what the router is told at the end of the turn
    journal_bit: which bit of a link's `ack_parts` stands for the journal of sessions
    """

    limits: Limits
    registry: Registry
    drop_counters: DropCounters
    shard_totals: ShardTotals
    batches: list[Batch]
    topics: TopicTable
    keep_alive_monitor: Any
    journal: JournalRecorder
    journal_bit: int
    now_us: int
    monotonic: float

    @property
    def commands(self) -> CommandQueue: ...

    def add_topic(self, name: bytes) -> bool:
        """Give a checked topic name its partition and number; False if there is no room for another topic."""

    def refuse_topic(self, link: Any, name: bytes, packet: Any) -> None:
        """Answer a PUBLISH whose topic there is no room for. raises: MqttFault where that ends the connection"""

    def publisher_number(self, partition: int, client_id: str) -> int:
        """The number of a publisher in a partition, never 0."""

    def settle(self) -> None:
        """Put what was published so far before the commands that come now."""

    slowing: Any

    def hand_over(self, link: Any, client_id: str, data: bytes) -> bool:
        """Whether the client lives elsewhere; then its connection is on its way there."""

    def confirm(
        self, asked: list[tuple[str, str]], then: Callable[[], None], *, publishers: bool = False
    ) -> bool:
        """Whether what these filters, (as written, plain), match will come from everywhere; else `then` is called
        when it does. publishers: and it is known who publishes"""

    def slow(self, link: Any, much: bool) -> None:
        """Read nothing from the link's client until the partitions it publishes to have caught up."""

    def hold(self, link: Any) -> None:
        """Keep the link's acknowledgements until what they promise is true."""

    def hold_messages(self, link: Any, data: object) -> None:
        """Keep messages on their way to the link's client until the facts noted about them are written."""

    def refuse_publish(self, link: Any, packet: Any, partition: int) -> None:
        """Answer a PUBLISH whose partition takes none for now."""

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Call back in a turn after so many seconds."""

    def crashed(self, connection: Any) -> None:
        """A fault of ours while serving one client: it alone loses its connection."""

    def next_turn(self, call: Callable[[], None]) -> None:
        """Call back when the next turn begins."""

    def refresh(self, link: Any) -> None:
        """Have the link's readers go on at the end of the turn: there is room or credit again."""

    def send_again(self, link: Any) -> None:
        """Read the link's `unsent` messages from the log and send them with DUP, as far as its receive maximum
        goes; after the last one attach its readers."""

    def check(self, link: Any, work: Any, done: Any) -> bool:
        """Run `work` beside the loop for a client that connects, then `done(result, fault)`. False: too much waits."""

    def hold_back(self, link: Any, answer: Any) -> None:
        """Call `answer`, which refuses the client, later the more often that was done where it is."""

    def has_room(self, link: Any) -> bool:
        """Whether one more client may log in through the link's listener."""

    def logged_in(self, link: Any) -> None:
        """It is no newcomer any more, whom others may take the place of."""

    def keeps(self, link: Any, size: int) -> bool:
        """So many bytes are kept of a link that has not logged in. False: that is too much, it has to go."""

    def owes(self, link: Any, is_owed: bool) -> None:
        """A link that has not logged in waits for the broker, or the broker for its client."""

    def assigned_client_id(self, prefix: str) -> str:
        """A client id that nobody uses."""

    def event(self, name: str, link: Any, **fields: object) -> None:
        """Tell the operator."""
