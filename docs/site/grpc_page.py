"""The page of gRPC, made from the comments of the proto files.

Made by: python docs/site/grpc_page.py > docs/reference/grpc.md

Needs grpcio-tools, of the extra dev. tests/services/test_reference_page.py compares them."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PROTO = ROOT / "rumq/services/proto"
sys.path[:0] = [str(ROOT)]

HEAD = """\
# gRPC: `rumq.v1`

`grpc.port = 8820` in the [settings](settings.md) turns it on, `pip install "rumq[grpc]"` brings what it needs. The
server is a process beside the broker (`rumqd grpc` is the same by hand); [the guide](../guides/services.md) begins
with it. Proto files are in the package, `rumq/services/proto`; reflection and the health service (`grpc.health.v1`,
`NOT_SERVING` while the broker does not answer, and during a stop) are on. This page is made from their comments.

## What holds for all calls

- **Logins** are those of `[auth]`, tokens and rules those of the gateway (`gateway.tokens_file`,
  `gateway.rules_file`, else `auth.rules_file`), on topics with their mount points. A token has its roles (`publish`;
  `read` to subscribe, fetch and describe; `administer` to broadcast; those of queues are with them); a user (password, JSON Web Token, client
  certificate, or nobody where `grpc.anonymous` admits it) publishes, subscribes, fetches and lists topics. Messages
  are published over MQTT as that user, so quotas are MQTT's; the broker knows the user's name, not the groups of a
  token or the names of a certificate: a rule that *allows* by these holds for reading alone, one that *denies* holds
  for both. Wrong logins wait longer each time, by network.
- **A reload** (SIGHUP) takes users, tokens, rules and certificates into force, also for calls that run: they end with
  `LOGIN_ENDED`, or see less.
- **Durability** is the stream's: an id is answered when the broker has acknowledged the message. An answer takes 20
  to 100 ms longer than the acknowledgement, as the id is read back from the log ([decision
  60](../decisions/0060-grpc.md)); streams hide that, as many messages are on their way at once.
- **Subscribe and Fetch read files**, and cost the broker nothing; a record comes 50 to 150 ms after its
  acknowledgement. Who needs it sooner subscribes over MQTT.
- **In a cluster** any node publishes, whoever leads. A node reads its own copies: `NO_COPY_HERE` says that it has
  none of a partition, or one that is more than 3 s behind its leader, or that it reaches not all leaders for 15 s; a
  running Subscribe ends so, and goes on at another node with its `cursor`.
- **Bounds**: `grpc.calls_max` open calls, half of them of a network (an IPv4 address or an IPv6 /64), half of a user,
  100 of a connection; `grpc.request_bytes_max`, `grpc.request_messages_max`, 64 entries of `Subscribe`;
  `grpc.waiting_bytes_max` of messages that wait for the broker, 8 MiB and 50,000 messages of a stream, beyond which
  it is not read. A Subscribe or consumer holds one answer of 256 KiB, or one larger record. Consumers of queues hold
  256 MiB together beside that, each channel a quarter of it at most, and one message at least. A record may be larger than the 4 MiB
  that gRPC's clients take by default: set the largest message to receive there.
- **Figures** are at the gateway's `/metrics`: calls by method and status, durations, open calls, messages
  ([metrics.md](metrics.md#the-grpc-server-while-there-is-one-told-by-the-gateway-of-its-node)).
- **Deadlines** end the work of a call; what a publisher has not sent to the broker by then is not sent.
"""
KINDS = {
    1: "double", 3: "int64", 4: "uint64", 5: "int32", 8: "bool", 9: "string", 12: "bytes", 13: "uint32",
}  # fmt: skip
MESSAGE, ENUM, REPEATED = 11, 14, 3
FILE_MESSAGE, FILE_ENUM, FILE_SERVICE, INNER = 4, 5, 6, 2  # numbers of fields in descriptor.proto


def page() -> str:
    """Its text."""
    parts = [HEAD]
    for file in described():
        parts += of_file(file)
    return "".join([*parts, *reasons()])


def described() -> list[Any]:
    """Descriptors with comments."""
    import grpc_tools
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from grpc_tools import protoc

    names = sorted(str(path.relative_to(PROTO)) for path in PROTO.rglob("*.proto"))
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/set"
        well_known = Path(grpc_tools.__file__).parent / "_proto"
        status = protoc.main(
            ["protoc", f"-I{PROTO}", f"-I{well_known}", "--include_source_info", f"--descriptor_set_out={out}", *names]
        )
        if status:
            raise SystemExit(status)
        return list(FileDescriptorSet.FromString(Path(out).read_bytes()).file)


def of_file(file: Any) -> Iterator[str]:
    comments = {tuple(each.path): each.leading_comments for each in file.source_code_info.location}
    about = next(each for each in file.source_code_info.location if list(each.path) == [12])  # of `syntax`
    yield f"\n{paragraphs(about.leading_comments)}\n"
    for number, service in enumerate(file.service):
        yield f"\n## {service.name}\n\n{paragraphs(comments[FILE_SERVICE, number])}\n"
        for index, method in enumerate(service.method):
            asks = ("stream " if method.client_streaming else "") + linked(method.input_type)
            gives = ("stream " if method.server_streaming else "") + linked(method.output_type)
            yield f"\n### {method.name}\n\n{asks} → {gives}\n\n"
            yield f"{paragraphs(comments[FILE_SERVICE, number, INNER, index])}\n"
    yield f"\n## Messages of {file.service[0].name}\n"
    for number, message in enumerate(file.message_type):
        yield f"\n### {message.name}\n\n{paragraphs(comments[FILE_MESSAGE, number])}\n"
        entries = {each.name: each for each in message.nested_type}
        if message.field:
            yield "\n| field | type | meaning |\n|---|---|---|\n"
        for index, each in enumerate(message.field):
            text = cell(comments[FILE_MESSAGE, number, INNER, index])
            yield f"| `{each.name}` = {each.number} | {kind_of(each, entries)} | {text} |\n"
    for number, enum in enumerate(file.enum_type):
        yield f"\n### {enum.name}\n\n{paragraphs(comments[FILE_ENUM, number])}\n\n| value | meaning |\n|---|---|\n"
        for index, value in enumerate(enum.value):
            yield f"| `{value.name}` = {value.number} | {cell(comments[FILE_ENUM, number, INNER, index])} |\n"


def reasons() -> Iterator[str]:
    from rumq.services.contract.faults import REASONS

    yield (
        "\n## Reasons\n\nOf the ErrorInfo in the details of a status (`grpc-status-details-bin`), with its code. "
        "`UNAVAILABLE` and `RESOURCE_EXHAUSTED` have a RetryInfo too.\n\n"
        "| reason | code | what it says |\n|---|---|---|\n"
    )
    for name, (code, text) in REASONS.items():
        yield f"| `{name}` | {code.name} | {text} |\n"
    yield (
        "\nWithout details, by gRPC itself: a request larger than `grpc.request_bytes_max`, metadata of more than 16 KiB "
        "(a name and a value count 32 bytes more), and more than 1,000 calls beyond `grpc.calls_max` (`RESOURCE_EXHAUSTED`), a call that is not in the service (`UNIMPLEMENTED`), a "
        "deadline that has passed (`DEADLINE_EXCEEDED`).\n"
    )


def kind_of(field: Any, entries: Mapping[str, Any]) -> str:
    if field.type == MESSAGE:
        entry = entries.get(field.type_name.rpartition(".")[2])
        if entry is not None:
            return f"map of {kind_of(entry.field[0], {})} to {kind_of(entry.field[1], {})}"
    kind = linked(field.type_name) if field.type in (MESSAGE, ENUM) else KINDS[field.type]
    return f"repeated {kind}" if field.label == REPEATED else kind


def linked(name: str) -> str:
    short = name.rpartition(".")[2]
    return f"[{short}](#{short.lower()})"


def paragraphs(comment: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in comment.split("\n\n")).strip()


def cell(comment: str) -> str:
    return " ".join(comment.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
