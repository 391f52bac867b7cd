"""The newest spans of a shard, for the gateway: from a number on, a bounded number of them."""

from __future__ import annotations

from rumq.admin import requests as q
from rumq.admin import rows as r
from rumq.tracing.tracer import Tracer


def span_page(tracer: Tracer, asked: q.Spans) -> dict[str, list[r.ShardSpans]]:
    """raises: ValueError for a cursor that is none"""
    tracer.sweep()
    spans, number, lost = tracer.ring.after(cursor_of(asked.after).get(tracer.shard, 0), asked.limit)
    every = tracer.sampler.every if tracer.sampler is not None else 0
    row = r.ShardSpans(shard=tracer.shard, sample_every=every, spans=spans, next=number, lost=lost)
    return {"shards": [row]}


def cursor_of(text: str) -> dict[int, int]:
    """Shard -> number. raises: ValueError"""
    found = {}
    for part in text.split(",") if text else ():
        shard, _, number = part.partition(":")
        if not (shard.isdecimal() and number.isdecimal() and len(part) < 40):
            raise ValueError(f"cannot take after {text!r}: expected shard:number, separated by commas")
        found[int(shard)] = int(number)
    return found
