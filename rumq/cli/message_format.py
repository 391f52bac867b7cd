"""Output formats of `rumqd sub` and `rumqd log read`: a superset of mosquitto_sub's."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from rumq.errors import ConfigError, Fault


class Shown(NamedTuple):
    """A message to print. None: not known"""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    time: str | None = None  # when the broker received it, RFC 3339
    offset: int | None = None  # in its topic
    lsn: int | None = None  # in its partition
    partition: str | None = None
    properties: Mapping[str, object] = {}  # by their MQTT 5 names, with underscores; user_properties: pairs


def number(value: object) -> bytes:
    return b"-" if value is None else str(value).encode()


LETTERS: Final[dict[str, tuple[str, Callable[[Shown], bytes]]]] = {
    "%": ("a per cent sign", lambda _: b"%"),
    "t": ("topic", lambda message: message.topic.encode()),
    "p": ("payload, byte for byte", lambda message: message.payload),
    "x": ("payload in hex", lambda message: message.payload.hex().encode()),
    "l": ("payload's length in bytes", lambda message: number(len(message.payload))),
    "q": ("QoS", lambda message: number(message.qos)),
    "r": ("1 if retained", lambda message: number(int(message.retain))),
    "o": ("offset in the topic", lambda message: number(message.offset)),
    "n": ("lsn in the partition", lambda message: number(message.lsn)),
    "k": ("partition", lambda message: number(message.partition)),
    "I": ("time the broker received it, RFC 3339", lambda message: number(message.time)),
    "j": ("the message as JSON", lambda message: as_json(message)),
}
ESCAPES: Final = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "e": b"\x1b", "a": b"\a", "\\": b"\\"}

PAYLOAD: Final = "%p"
VERBOSE: Final = "%t %p"
JSON: Final = "%j"

HELP: Final = "\n".join(
    ["output format (-F):"]
    + [f"  %{letter}  {line}" for letter, (line, _) in LETTERS.items()]
    + ["  \\n \\t \\r \\0 \\e \\a \\\\ as in C; o, n, k and I are '-' if unknown"]
)

Piece = Callable[[Shown], bytes]


def formatter(template: str) -> Piece:
    """Turn `%o %t %p` into a function of a message; raises ConfigError at an unknown letter."""
    pieces: list[Piece] = []
    text = iter(template)
    for character in text:
        if character in "%\\":
            letter = next(text, "")
            known = LETTERS if character == "%" else ESCAPES
            if letter not in known:
                allowed = ", ".join(character + letter for letter in known)
                raise ConfigError(Fault("--format", character + letter, "", f"expected one of {allowed}"))
            pieces.append(LETTERS[letter][1] if character == "%" else constant(ESCAPES[letter]))
        else:
            pieces.append(constant(character.encode()))
    return lambda message: b"".join(piece(message) for piece in pieces)


def constant(text: bytes) -> Piece:
    return lambda _: text


def as_json(message: Shown) -> bytes:
    """One JSON object. A payload that is not UTF-8 becomes `payload_base64`."""
    import base64
    import json

    shown: dict[str, object] = {"topic": message.topic, "qos": message.qos, "retain": message.retain}
    try:
        shown["payload"] = message.payload.decode()
    except UnicodeDecodeError:
        shown["payload_base64"] = base64.b64encode(message.payload).decode()
    for name in ("time", "offset", "lsn", "partition"):
        if (value := getattr(message, name)) is not None:
            shown[name] = value
    if message.properties:
        shown["properties"] = dict(message.properties)
    return json.dumps(shown, ensure_ascii=False, default=shown_bytes).encode(errors="backslashreplace")


def shown_bytes(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
