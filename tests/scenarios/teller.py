"""What a router asks of the world, in words: a line for each effect."""

from typing import Any

from commitlog.row_layout import ROW_QOS, ROW_RETAIN
from router import effects as e
from router.readers.reader import Reader
from router.readers.subscriber import Subscriber
from router.readers.subscription import DeliveryOptions
from router.subscription_changes import LSN_MAX


class Teller:
    def __init__(self, partitions: list[Any], subscribers: dict[str, Subscriber]) -> None:
        self._partitions, self._subscribers = partitions, subscribers

    def told(self, effect: Any) -> str:
        kind = type(effect)
        if kind is e.Deliver:
            return self._delivered(effect)
        if kind is e.Scatter:
            return "\n".join(self._delivered(effect.as_delivery(part)) for part in effect.parts)
        if kind is e.DeliverRetained:
            messages = []
            while not effect.search.over:
                messages += effect.search.next_messages()
            what = ", ".join(f"p{m.partition}:{m.lsn} {m.topic}" for m in messages) or "nothing"
            return f"retained to {self._named(effect.reader)}: {what}, {in_words(effect.form)}"
        if kind is e.ReadCold:
            return f"read p{effect.partition} from {effect.lsn} on"
        if kind is e.FindStart:
            return f"find where {self._named(effect.reader)} begins"
        if kind is e.FindRetained:
            below = [f"p{i} below {lsn}" if lsn < LSN_MAX else f"p{i}, all of it" for i, lsn in effect.below.items()]
            return f"ask for retained {effect.subscription.topic_filter}: {', '.join(below)}"
        if kind is e.Merged:
            return f"{effect.key}'s {effect.asked} goes on with the others"
        if kind is e.ReplayStarted:
            at = ", ".join(f"p{index}:{lsn}" for index, lsn in enumerate(effect.reader.cursors))
            return f"{self._named(effect.reader)} begins at {at}"
        if kind is e.CatchUpPaused:
            return f"{self._named(effect.reader)} has more to come"
        if kind is e.RecordsLost:
            return f"{self._named(effect.reader)} misses {effect.records} of p{effect.partition}: {effect.why}"
        if kind is e.ReportShareWeight:
            return f"tell the home: {effect.weight} members of {effect.key}"
        if kind is e.ShareBegun:
            return f"write down: {effect.key} begins at {effect.cursors}"
        if kind is e.ConfirmShareLeft:
            return f"tell {effect.shard.key}: it has left {effect.key}"
        if kind is e.ReportShareReady:
            return f"tell the home: members of {effect.key} can take more"
        what = {e.ReturnShare: "take back", e.ReportShareDone: "done"}[kind]
        ranges = ", ".join(f"p{part}:{first}-{stop}" for part, first, stop in effect.ranges)
        return f"tell the home: {what} of {effect.key}: {ranges or 'nothing, nobody can take any'}"

    def _delivered(self, effect: e.Deliver) -> str:
        words = memoryview(effect.chunk.rows).cast("I")
        names = self._partitions[effect.partition].topic_names
        parts: list[str] = []
        for row in range(effect.first, effect.stop):
            form = effect.form + 1 if effect.wanted is None else effect.wanted[effect.places[row]]
            if form:
                topic, bits = names[words[row * 8]].decode(), effect.chunk.rows[row * 32 + 28]
                place = f"p{effect.partition}:{effect.chunk.base_lsn + row} {topic} (qos {bits & ROW_QOS}"
                place += ", retain)" if bits & ROW_RETAIN else ")"
                parts.append(f"{place} {in_words(effect.group.forms[form - 1])}")
        return f"to {', '.join(map(self._named, effect.readers))}: {'; '.join(parts)}"

    def _named(self, reader: Reader) -> str:
        if reader.share is not None:
            member = next((m for m in reader.share.members.values() if m.reader is reader), None)
            return f"{member.subscriber.key if member else 'nobody'} in {reader.share.key}"
        who = self._subscribers[reader.key]
        for asked, other in [*who.late.items(), *who.replays.items()]:
            if other is reader:
                return f"{who.key}'s {asked}"
        return who.key


def in_words(form: DeliveryOptions) -> str:
    said = [f"as qos {form.qos} at most"]
    said += ["retain as published"] if form.retain_as_published else []
    said += ["not to its publisher"] if form.no_local else []
    said += [f"ids {', '.join(map(str, form.identifiers))}"] if form.identifiers else []
    return ", ".join(said)
