"""Who answers which operation of the admin interface in a shard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from rumq.events.event_lines import RING
from rumq.session.state.histogram import Histogram
from rumq.shards.admin.actions import BrokerActions, ClientActions, PartitionActions, SubscriptionReset
from rumq.shards.admin.broadcast import BroadcastAction
from rumq.shards.admin.dismissal import Dismissal
from rumq.shards.admin.listings.listings import ClientListing, Done, MayRead, TopicListing
from rumq.shards.admin.listings.survey import Survey
from rumq.shards.admin.queries.client_detail import ClientDetailQuery, SubscribersQuery
from rumq.shards.admin.queries.figures import Figures
from rumq.shards.admin.queries.groups import GroupsQuery
from rumq.shards.admin.queries.ledger import LedgerQuery
from rumq.shards.admin.queries.parts import AdminParts
from rumq.shards.admin.queries.recent_events import RecentEvents
from rumq.shards.admin.queries.retained_search import RetainedSearch
from rumq.shards.admin.queries.span_pages import span_page
from rumq.shards.admin.queries.status import StatusQuery
from rumq.shards.admin.queries.topic_tree import TopicTreeQuery
from rumq.shards.admin.queries.views import Views
from rumq.shards.admin.queries.waiting import WaitingQuery
from rumq.shards.admin.questions import Handler
from rumq.shards.admin.standing_orders import StandingOrders


def later(answer: Callable[[Any, Done], None]) -> Handler:
    """A handler whose answer calls back."""
    return lambda request: partial(answer, request)


def for_reader(answer: Callable[[Any, MayRead, Done], None]) -> Handler:
    """The same, of an answer that leaves out what its reader may not read."""
    return lambda request, may_read: partial(answer, request, may_read)


def handlers_of(
    parts: AdminParts, orders: StandingOrders, status: StatusQuery, clients: ClientListing, topics: TopicListing,
    histograms: dict[str, Histogram],
) -> Mapping[str, Handler]:  # fmt: skip
    """By name of the operation: takes its request, and where `Tells.in_shards` says so what its reader may read; gives
    the answer, or what will call back with it."""
    counted, loop, reads = parts.counted, parts.loop, parts.reads
    registry, router, drop_counters, timers = counted.registry, counted.router, counted.drop_counters, loop.timers
    views, tracing = Views(parts), orders.tracing
    ends, access = Dismissal(registry, loop.events), ClientActions(counted, loop, parts.clients.gate)
    partitions = PartitionActions(counted.store.own, parts.log)
    broker = BrokerActions(counted, loop, parts.shards)
    survey = Survey(registry, timers)
    detail = ClientDetailQuery(registry, router.feeds, reads.consumers.lag, drop_counters, loop.clock, clients)
    groups = GroupsQuery(router, timers)

    return {
        "status": lambda _: survey.ask(lambda connected: status.answer(connected.total())),
        "clients": lambda request: partial(clients.list, msgspec.to_builtins(request)),
        "topics": lambda request, may_read: partial(topics.list, msgspec.to_builtins(request), may_read),
        "ledger": later(
            LedgerQuery(registry, drop_counters, lambda readers, done: reads.pending(readers, done, None)).list
        ),
        "disconnect": ends.disconnect,
        "drop": ends.drop,
        "shards": views.shards,
        "listeners": views.listeners,
        "partitions": views.partitions,
        "segments": views.segments,
        "exports": views.exports,
        "bans": views.bans,
        "cluster": views.cluster,
        "terms": views.terms,
        "client": detail.show,
        "tree": for_reader(TopicTreeQuery(counted.store, timers).list),
        "groups": later(groups.list),
        "channel_places": lambda _: groups.channel_places(),
        "retained": for_reader(RetainedSearch(router.retained, timers, reads.gate).list),
        "spans": partial(span_page, parts.traffic.tracer),
        "metrics": later(Figures(parts, views, histograms).metrics),
        "events": RecentEvents(counted.index, RING).events,
        "traces": tracing.running,
        "trace": orders.order_handler("trace", tracing.begin),
        "untrace": orders.revocation_handler("trace", tracing.end),
        "ban": orders.order_handler("ban", access.ban),
        "broadcast": BroadcastAction(registry, timers, loop.events).send,
        "unban": orders.revocation_handler("ban", access.unban),
        "reset": SubscriptionReset(registry, loop, parts.replays).reset,
        "seal": partitions.seal,
        "trim": partitions.trim,
        "drain": orders.order_handler("drain", access.drain),
        "undrain": orders.revocation_handler("drain", access.undrain),
        "reload": broker.reload,
        "prepare": broker.prepare,
        "shutdown": broker.shutdown,
        "ping": views.ping,
        "subscribers": later(SubscribersQuery(registry, timers).list),
        "waiting": later(WaitingQuery(registry, reads.pending).count),
    }
