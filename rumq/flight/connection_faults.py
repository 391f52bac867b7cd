"""Messages with remedies for gRPC's connection errors."""

from __future__ import annotations


def why_away(text: str) -> str:
    """The message for a gRPC connection error."""
    for sign, why in SIGNS:
        if sign in text:
            return why
    words = text.rpartition("last error: ")[2] or text
    return words.partition(". gRPC client debug")[0][:300]


SIGNS = (
    ("Connection refused", "nobody listens there; a broker serves it if [flight] port is set"),
    ("resolving", "this host name is unknown"),
    ("lookup failed", "this host name is unknown"),
    ("wrong version number", "it speaks no TLS there: write grpc://"),
    ("not in peer certificate", "its certificate is for another name than this address has"),
    ("ostname verification", "its certificate is for another name than this address has"),
    ("certificate verify failed", "its certificate is signed by an authority that tlsCa does not have"),
    ("parsing HTTP/2", "the server there does not speak Flight: is it the port of [flight]?"),
    (
        "Socket closed",
        "the connection was closed: is it the port of [flight], and does it want TLS (grpc+tls://) or a client "
        "certificate (tlsCertificate)?",
    ),
    ("eadline", "no answer in time (readTimeoutMs)"),
)
# Permanent faults, without retry.
LASTING = frozenset(why for sign, why in SIGNS if sign not in ("Connection refused", "Socket closed", "eadline"))
