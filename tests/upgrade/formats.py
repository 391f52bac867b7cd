"""What this version writes to disk and to other nodes: the number of each format, its fields, and one sample of each.

A change here needs a new archive (`tests.upgrade.write`), so that the next version is tried with data of this one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import msgspec
from msgspec import inspect

import commitlog.chunk
import commitlog.format.segment
import commitlog.index.dictionary
import commitlog.index.index
import commitlog.log.store
import commitlog.replica.replica_note
import commitlog.row_layout
import rumq.cluster.agent.node_identity
import rumq.cluster.control.records
import rumq.cluster.links.greeting
import rumq.cluster.replication.messages
import rumq.gateway.history.history_file
import rumq.kafka.groups.commit_entries
import rumq.kafka.groups.commit_file
import rumq.session.journal.entries
import rumq.shards.bus.messages
import rumq.shards.bus.shard_tally

# Format -> the modules of its structs, each of which is read by its tag.
STRUCTS: dict[str, tuple[ModuleType, ...]] = {
    "committed offsets of Kafka's groups": (rumq.kafka.groups.commit_entries,),
    "session journal": (rumq.session.journal.entries,),
    "messages between replicas": (rumq.cluster.replication.messages,),
    "messages between shards": (rumq.shards.bus.messages, rumq.shards.bus.shard_tally),
    "greeting between nodes": (rumq.cluster.links.greeting,),
    "records in etcd": (rumq.cluster.control.records,),
    "identity of a node": (rumq.cluster.agent.node_identity,),
}


def current() -> dict[str, Any]:
    """Format -> its number, or its fields where they only ever grow."""
    return {
        "data directory": commitlog.log.store.FORMAT,
        "segment": commitlog.format.segment.FORMAT_VERSION,
        "chunk": commitlog.chunk.VERSION,
        "row": commitlog.row_layout.ROW_BYTES,
        "index": commitlog.index.index.MAGIC.decode(),
        "topics.snap": commitlog.index.dictionary.MAGIC.decode(),
        "replica.json": list(commitlog.replica.replica_note.Note._fields),
        "history of the gateway": rumq.gateway.history.history_file.FORMAT.decode().strip(),
        "file of committed offsets": rumq.kafka.groups.commit_file.FORMAT.decode().strip(),
        "feature level of a cluster": rumq.cluster.links.greeting.FEATURE_LEVEL,
        **lake(),
        **{name: fields_of(modules) for name, modules in STRUCTS.items()},
    }


def lake() -> dict[str, Any]:
    from rumq.lake.manifest import LakeFile
    from rumq.lake.schema import SCHEMA

    return {
        "lake, file": list(LakeFile._fields),
        "lake, columns": [f"{each.name} {each.type}" for each in SCHEMA],
    }


def structs_of(modules: tuple[ModuleType, ...]) -> Iterator[type[msgspec.Struct]]:
    for module in modules:
        for each in vars(module).values():
            if isinstance(each, type) and issubclass(each, msgspec.Struct) and each.__module__ == module.__name__:
                yield each


def name_of(struct: type[msgspec.Struct]) -> str:
    tag = struct.__struct_config__.tag
    return struct.__name__ if tag is None else str(tag)


def fields_of(modules: tuple[ModuleType, ...]) -> dict[str, list[str]]:
    return {
        name_of(each): list(each.__struct_encode_fields__) for each in structs_of(modules) if each.__struct_fields__
    }


def read_as(format_name: str, name: str) -> type[msgspec.Struct]:
    """The struct of today that has this name. raises: KeyError"""
    return {name_of(each): each for each in structs_of(STRUCTS[format_name])}[name]


def samples() -> dict[str, dict[str, str]]:
    """Format -> struct -> MessagePack in hexadecimal of one with all fields, each with a value of its own."""
    return {
        name: {name_of(each): sample_of(each) for each in structs_of(modules) if each.__struct_fields__}
        for name, modules in STRUCTS.items()
    }


def sample_of(struct: type[msgspec.Struct]) -> str:
    raw = msgspec.msgpack.encode(value_of(inspect.type_info(struct), itertools.count(1)))
    assert msgspec.msgpack.encode(msgspec.msgpack.decode(raw, type=struct)) == raw, struct
    return raw.hex()


def value_of(kind: inspect.Type, numbers: Iterator[int]) -> Any:
    """A value of this type, of what MessagePack has."""
    number = next(numbers)
    match kind:
        case inspect.BoolType():
            return True
        case inspect.IntType():
            return number
        case inspect.FloatType():
            return number + 0.5
        case inspect.StrType():
            return f"text {number}"
        case inspect.BytesType():
            return b"bytes %d" % number
        case inspect.LiteralType():
            return kind.values[0]
        case inspect.UnionType():
            return value_of(next(each for each in kind.types if not isinstance(each, inspect.NoneType)), numbers)
        case inspect.ListType() | inspect.VarTupleType():
            return [value_of(kind.item_type, numbers)]
        case inspect.TupleType() | inspect.NamedTupleType():
            items = kind.item_types if isinstance(kind, inspect.TupleType) else [f.type for f in kind.fields]
            return [value_of(each, numbers) for each in items]
        case inspect.DictType():
            return {value_of(kind.key_type, numbers): value_of(kind.value_type, numbers)}
        case inspect.StructType():
            values = {each.encode_name: value_of(each.type, numbers) for each in kind.fields}
            if not kind.array_like:
                return values if kind.tag is None else {kind.tag_field: kind.tag, **values}
            return [*([] if kind.tag is None else [kind.tag]), *values.values()]
    raise NotImplementedError(kind)
