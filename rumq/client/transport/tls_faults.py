"""TLS handshake errors as sentences for the user of the client. RFC 8446, 6.2; X509_verify_cert(3)."""

from __future__ import annotations

import ssl

SELF_SIGNED, UNKNOWN = {18}, {2, 19, 20, 21, 27}
NOT_YET, EXPIRED, REVOKED, PURPOSE, WRONG_NAME, WRONG_ADDRESS = 9, 10, 23, 26, 62, 64
NO_TLS = "the port does not speak TLS: use the broker's TLS port, or connect without TLS"
SHOW = "the broker requires a client certificate: name one with cert and key"
REASONS = {
    "WRONG_VERSION_NUMBER": NO_TLS,
    "RECORD_LAYER_FAILURE": NO_TLS,
    "HTTP_REQUEST": NO_TLS,
    "UNEXPECTED_EOF_WHILE_READING": "the broker closed the connection in the handshake: it may be a port without TLS",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": SHOW,
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "no common cipher, or the broker requires a client certificate (cert, key)",
    "TLSV1_ALERT_UNKNOWN_CA": "the broker does not trust the authority of this client's certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the broker does not accept this client's certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the broker does not accept this client's certificate",
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": "the broker refuses this certificate: it is not for clients",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the broker refuses this client's certificate: it has expired",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "the broker refuses this client's certificate: it is revoked",
    "TLSV1_ALERT_ACCESS_DENIED": "the broker refuses this client's certificate",
    "TLSV1_ALERT_PROTOCOL_VERSION": "the broker requires another TLS version",
    "UNSUPPORTED_PROTOCOL": "the broker offers only TLS versions that are too old",
    "TLSV1_ALERT_DECRYPT_ERROR": "the broker could not verify the handshake: key and certificate may not match",
}


def sentence(fault: ssl.SSLError) -> str:
    if isinstance(fault, ssl.SSLCertVerificationError):
        return refused_certificate(fault.verify_code, fault.verify_message)
    if isinstance(fault, ssl.SSLEOFError):
        return REASONS["UNEXPECTED_EOF_WHILE_READING"]
    reason = fault.reason or ""
    return REASONS.get(reason) or (reason.replace("_", " ").lower() if reason else str(fault))


def refused_certificate(code: int, message: str) -> str:
    what = "the broker's certificate"
    if code in SELF_SIGNED:
        return f"{what} is self-signed: to trust it, set cafile to it"
    if code in UNKNOWN:
        return f"{what} is signed by an unknown authority: set cafile to that"
    if code == EXPIRED:
        return f"{what} has expired"
    if code == NOT_YET:
        return f"{what} is not valid yet"
    if code == REVOKED:
        return f"{what} is revoked"
    if code == PURPOSE:
        return f"{what} is not for servers (extended key usage)"
    if code in (WRONG_NAME, WRONG_ADDRESS):
        # OpenSSL's message says which name was expected.
        return f"{what} is for another name ({message}): connect by its name; insecure accepts it anyway"
    return f"{what} was refused: {message}"
