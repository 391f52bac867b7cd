"""Functions by the settings: what each is told, and everything that is wrong with them. docs/guides/functions.md

Imports no code of others: `rumqd check` has a worker do that."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

from rumq.errors import ConfigError, Fault
from rumq.functions.function_code import maybe_problem
from rumq.functions.rules import STATE_TOPICS, FunctionRules, maybe_loop
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.topics import check_topic_filter, check_topic_name
from rumq.settings.keys import as_toml
from rumq.settings.table import Function, Settings

SOURCE = "settings"


def rules_of(settings: Settings) -> list[FunctionRules]:
    return [
        FunctionRules(
            each.name, each.filters, each.code, each.prefix, each.timeout_ms / 1000, each.memory_bytes_max,
            each.on_failure, each.records_max, each.start, each.user,
        )
        for each in settings.function
    ]  # fmt: skip


def check_functions(settings: Settings) -> None:
    """raises: ConfigError with every fault that can be seen without running code of others"""
    if found := list(faults_of(settings)):
        raise ConfigError(*found)


def faults_of(settings: Settings) -> Iterator[Fault]:
    names: set[str] = set()
    for each in settings.function:
        if each.name in names:
            yield fault_of(each, "name", "two functions have this name: give one of them another")
        names.add(each.name)
        yield from broken_topics(each)
        if (problem := maybe_problem(each.code)) is not None:
            yield fault_of(each, "code", problem)
    if not settings.function:
        return
    if settings.cluster.name:
        yield Fault(SOURCE, "function", "", "functions run on a broker alone, not in a cluster: run one beside it")
    if any(importlib.util.find_spec(name) is None for name in ("pyarrow", "numpy")):
        yield Fault(SOURCE, "function", "", "functions need pyarrow and numpy: pip install 'rumq[parquet]'")
    if (loop := maybe_loop(rules_of(settings))) is not None:
        way = " -> ".join([*loop, loop[0]])
        problem = f"what it publishes comes back to it ({way}): give it a prefix that no filter of these matches"
        yield Fault(SOURCE, f"function.{loop[0]}.prefix", "", problem)


def broken_topics(function: Function) -> Iterator[Fault]:
    for topic_filter in function.filters:
        try:
            check_topic_filter(topic_filter)
        except MqttFault as fault:
            yield fault_of(function, "filters", str(fault))
        else:
            if topic_filter.startswith("$"):
                yield fault_of(function, "filters", f"{topic_filter}: expected a filter of ordinary topics")
    prefix = function.prefix
    try:
        check_topic_name(prefix)
    except MqttFault as fault:
        yield fault_of(function, "prefix", str(fault))
    if not prefix.endswith("/") or prefix.startswith(("$", STATE_TOPICS)):
        yield fault_of(function, "prefix", 'expected the beginning of topic names, with a / at its end: "derived/"')


def fault_of(function: Function, key: str, problem: str) -> Fault:
    return Fault(SOURCE, f"function.{function.name}.{key}", as_toml(getattr(function, key)), problem)


def check_code(settings: Settings) -> Iterator[ConfigError]:
    """Have each function loaded and called with a batch without rows, in a worker. Yields what is wrong.

    cost: a process of half a second for each"""
    if not settings.function:
        return
    from rumq.functions.trial import maybe_fault

    for each, rules in zip(settings.function, rules_of(settings), strict=True):
        if (why := maybe_fault(rules)) is not None:
            yield ConfigError(fault_of(each, "code", why))
