"""Who answers which operation of the admin interface in a shard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from rumq.events.output import RING
from rumq.session.state.histogram import Histogram
from rumq.shards.admin.actions import Actions
from rumq.shards.admin.dismissal import Dismissal
from rumq.shards.admin.listings.listings import ClientListing, Done, MayRead, TopicListing
from rumq.shards.admin.listings.survey import Survey
from rumq.shards.admin.queries.client_detail import ClientDetail, Subscribers
from rumq.shards.admin.queries.figures import Figures
from rumq.shards.admin.queries.groups import Groups
from rumq.shards.admin.queries.ledger import Ledger
from rumq.shards.admin.queries.parts import AdminParts
from rumq.shards.admin.queries.recent_events import RecentEvents
from rumq.shards.admin.queries.retained_search import RetainedSearch
from rumq.shards.admin.queries.span_pages import span_page
from rumq.shards.admin.queries.status import StatusQuery
from rumq.shards.admin.queries.topic_tree import TopicTree
from rumq.shards.admin.queries.views import Views
from rumq.shards.admin.queries.waiting import Waiting
from rumq.shards.admin.questions import Handler
from rumq.shards.admin.standing_orders import StandingOrders


def handlers_of(
    parts: AdminParts, orders: StandingOrders, status: StatusQuery, clients: ClientListing, topics: TopicListing,
    histograms: dict[str, Histogram],
) -> Mapping[str, Handler]:  # fmt: skip
    """By name of the operation: takes its request, and where `Tells.in_shards` says so what its reader may read; gives
    the answer, or what will call back with it."""
    views, actions, tracing = Views(parts), Actions(parts), orders.tracing
    registry, router, timers = parts.registry, parts.router, parts.timers
    drop_counters = parts.counted.drop_counters
    ends = Dismissal(registry, parts.events)
    survey = Survey(registry, timers)
    groups = Groups(router, timers)
    detail = ClientDetail(registry, router.feeds, parts.lag, drop_counters, parts.clock, clients)

    def later(answer: Callable[[Any, Done], None]) -> Handler:
        return lambda request: partial(answer, request)

    def for_reader(answer: Callable[[Any, MayRead, Done], None]) -> Handler:
        return lambda request, may_read: partial(answer, request, may_read)

    return {
        "status": lambda _: survey.ask(lambda connected: status.answer(connected.total())),
        "clients": lambda request: partial(clients.list, msgspec.to_builtins(request)),
        "topics": lambda request, may_read: partial(topics.list, msgspec.to_builtins(request), may_read),
        "ledger": later(Ledger(registry, drop_counters, lambda readers, done: parts.pending(readers, done, None)).list),
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
        "tree": for_reader(TopicTree(parts.store, timers).list),
        "groups": later(groups.list),
        "channel_places": lambda _: groups.channel_places(),
        "retained": for_reader(RetainedSearch(router.retained, timers, parts.reads).list),
        "spans": partial(span_page, parts.tracer),
        "metrics": later(Figures(parts, views, histograms).metrics),
        "events": RecentEvents(parts.index, RING).events,
        "traces": tracing.running,
        "trace": orders.given("trace", tracing.begin),
        "untrace": orders.taken_back("trace", tracing.end),
        "ban": orders.given("ban", actions.ban),
        "unban": orders.taken_back("ban", actions.unban),
        "reset": actions.reset,
        "seal": actions.seal,
        "trim": actions.trim,
        "drain": orders.given("drain", actions.drain),
        "undrain": orders.taken_back("drain", actions.undrain),
        "reload": actions.reload,
        "prepare": actions.prepare,
        "shutdown": actions.shutdown,
        "ping": views.ping,
        "subscribers": later(Subscribers(registry, timers).list),
        "waiting": later(Waiting(registry, parts.pending).count),
    }
