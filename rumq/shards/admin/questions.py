"""Questions that the operator asks a running shard, each given to the handler of its operation.

Answers are plain data for JSON, made on the loop's thread."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from rumq.admin.operations import OPERATIONS, READER, AskingUser, request_of
from rumq.auth.identity import Identity
from rumq.session.flow_control.listener_policy import ListenerPolicy
from rumq.shards.admin.listings.listings import Answer, Later, MayRead, every_topic
from rumq.shards.admin.queries.status import StatusQuery

QUESTIONS = tuple(OPERATIONS)
Handler = Callable[..., Any]


class Unknown(ValueError):
    """A question that nobody here can answer."""

    def __str__(self) -> str:
        return f"cannot answer {self.args[0]!r}; ask one of {', '.join(QUESTIONS)}"


class TopicReaders:
    """Of which topics an answer may tell: those that the reader it is for may read.

    The gateway names the reader; the rules are those of the gateway's clients, here as there. A question without a
    reader is the operator's own, who can read the data directory."""

    def __init__(self, policies: Collection[ListenerPolicy]) -> None:
        """policies: of every listener, the gateway's among them"""
        self._policies = policies

    def may_read(self, question: Answer) -> MayRead:
        """raises: ValueError for a reader whose rules are not known here"""
        if READER not in question:
            return every_topic
        reader = msgspec.convert(question[READER], AskingUser)
        policy = next((each for each in self._policies if each.is_gateway), None)
        if policy is None:
            raise ValueError("this broker has no gateway, so no rules for its readers: set gateway.port here too")
        permit = policy.rules.permit(Identity(reader.user), "") if policy.rules is not None else None
        return permit.past.may_receive if permit is not None else every_topic


class AdminQueries:
    """The one way into a shard for questions and actions of the operator."""

    def __init__(self, status: StatusQuery, readers: TopicReaders, handlers: Mapping[str, Handler]) -> None:
        """status: is told what shard 0 says for all; readers: of which topics an answer may tell

        handlers: one for each operation of `rumq.admin.operations`, by name; where the operation says `in_shards` it
        takes what the reader may read as a second argument. raises: LookupError for an operation without a handler, and
        for a handler without an operation"""
        without = sorted(OPERATIONS.keys() - handlers.keys())
        if without:
            raise LookupError(f"nobody in a shard answers {', '.join(without)}: add a line to `handlers_of`")
        unlisted = sorted(handlers.keys() - OPERATIONS.keys())
        if unlisted:
            raise LookupError(f"{', '.join(unlisted)}: in no line of TABLE in rumq/admin/operations.py")
        self.handlers = dict(handlers)
        self.status, self._readers = status, readers

    def answer(self, question: Answer) -> Answer | Later:
        """question: {"ask": one of QUESTIONS, ...the fields of its request}

        returns: the answer, or what will call back with it. raises: ValueError"""
        ask = question.get("ask")
        if not isinstance(ask, str) or ask not in OPERATIONS or ask not in self.handlers:
            raise Unknown(ask)
        operation, request = request_of(question)
        told = (self._readers.may_read(question),) if operation.tells.in_shards else ()
        found: Answer | Later = self.handlers[ask](request, *told)
        return found
