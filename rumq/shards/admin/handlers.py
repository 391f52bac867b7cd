"""Who answers which operation of the admin interface in a shard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from rumq.events import RING
from rumq.session.state.histogram import Histogram
from rumq.shards.admin.actions import Actions
from rumq.shards.admin.client_detail import ClientDetail, Subscribers
from rumq.shards.admin.figures import Figures
from rumq.shards.admin.groups import Groups
from rumq.shards.admin.parts import AdminParts
from rumq.shards.admin.recent_events import RecentEvents
from rumq.shards.admin.retained_search import RetainedSearch
from rumq.shards.admin.topic_tree import TopicTree
from rumq.shards.admin.views import Views
from rumq.shards.admin.waiting import Waiting
from rumq.shards.orders.standing_orders import StandingOrders
from rumq.shards.stats.admin_listings import ClientListing, Done, MayRead
from rumq.shards.tracing.span_pages import span_page

Handler = Callable[..., Any]


def handlers_of(
    parts: AdminParts, orders: StandingOrders, listing: ClientListing, histograms: dict[str, Histogram]
) -> Mapping[str, Handler]:
    """By name of the operation: takes its request, and where `Tells.in_shards` says so what its reader may read; gives
    the answer, or what will call back with it."""
    views, actions, tracing = Views(parts), Actions(parts), orders.tracing

    def later(answer: Callable[[Any, Done], None]) -> Handler:
        return lambda request: partial(answer, request)

    def for_reader(answer: Callable[[Any, MayRead, Done], None]) -> Handler:
        return lambda request, may_read: partial(answer, request, may_read)

    return {
        "shards": views.shards,
        "listeners": views.listeners,
        "partitions": views.partitions,
        "segments": views.segments,
        "exports": views.exports,
        "bans": views.bans,
        "cluster": views.cluster,
        "terms": views.terms,
        "client": ClientDetail(parts, listing).show,
        "tree": for_reader(TopicTree(parts).list),
        "groups": later(Groups(parts).list),
        "retained": for_reader(RetainedSearch(parts).list),
        "spans": partial(span_page, parts.tracer),
        "metrics": later(Figures(parts, views, histograms).metrics),
        "events": RecentEvents(parts, RING).events,
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
        "subscribers": later(Subscribers(parts).list),
        "waiting": later(Waiting(parts).count),
    }
