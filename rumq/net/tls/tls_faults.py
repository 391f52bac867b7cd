"""TLS errors of Python's ssl module as sentences for the operator. RFC 8446, 6.2; codes of X509_verify_cert(3)."""

from __future__ import annotations

import ssl

from rumq.net.certificate import BadDer, CertificateNames, names, rfc2253

NOT_YET, EXPIRED, REVOKED, NO_LIST, LIST_EXPIRED, PURPOSE = 9, 10, 23, 3, 12, 26
UNKNOWN = {2, 18, 19, 20, 21, 27}
REASONS = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "no client certificate, and this listener asks for one",
    "NO_SHARED_CIPHER": "no cipher that both sides know",
    "NO_SHARED_GROUP": "no key exchange group that both sides know",
    "NO_SUITABLE_SIGNATURE_ALGORITHM": "no kind of signature that both sides know",
    "UNSUPPORTED_PROTOCOL": "a TLS version older than this listener takes",
    "VERSION_TOO_LOW": "a TLS version older than this listener takes",
    "WRONG_SSL_VERSION": "a TLS version that this listener does not know",
    "WRONG_VERSION_NUMBER": "bytes that are no TLS",
    "HTTP_REQUEST": "an HTTP request without TLS",
    "HTTPS_PROXY_REQUEST": "a request to a proxy, without TLS",
    "UNEXPECTED_MESSAGE": "TLS messages out of order",
    "DECRYPTION_FAILED_OR_BAD_RECORD_MAC": "a record that was changed on its way, or was never TLS",
    "NO_APPLICATION_PROTOCOL": "no protocol (ALPN) that both sides know",
    "TLSV1_ALERT_UNKNOWN_CA": "the client does not know the authority of this broker's certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the client does not accept this broker's certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the client does not accept this broker's certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the client says that this broker's certificate has expired",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "the client says that this broker's certificate is revoked",
    "TLSV1_ALERT_ACCESS_DENIED": "the client does not accept this broker's certificate",
    "TLSV1_ALERT_PROTOCOL_VERSION": "the client wants another TLS version",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "the client found no cipher or version that both sides know",
    "TLSV1_ALERT_USER_CANCELLED": "the client gave up",
    "TLSV1_ALERT_DECRYPT_ERROR": "the client could not verify the handshake",
}


def describe_fault(fault: ssl.SSLError, tls: ssl.SSLObject | None = None) -> str:
    """tls: the SSLObject, to look for the certificate that was refused"""
    if isinstance(fault, ssl.SSLCertVerificationError):
        return describe_refusal(fault.verify_code, fault.verify_message, maybe_leaf(tls))
    reason = fault.reason or ""
    known = REASONS.get(reason)
    if known is not None:
        return known
    if reason:
        return f"TLS failed: {reason.replace('_', ' ').lower()}"
    return "TLS failed: the connection ended in the middle of it"


def describe_refusal(code: int, message: str, leaf: CertificateNames | None) -> str:
    who = f" ({rfc2253(leaf.subject)})" if leaf is not None else ""
    if code == EXPIRED:
        return f"the client's certificate{who} expired" + (f" on {leaf.not_after}" if leaf else "")
    if code == NOT_YET:
        return f"the client's certificate{who} is not valid before " + (leaf.not_before if leaf else "some day")
    if code == REVOKED:
        return f"the client's certificate{who} is revoked"
    if code in UNKNOWN:
        issuer = f": {rfc2253(leaf.issuer)}" if leaf is not None else ""
        return f"the client's certificate{who} comes from an unknown authority{issuer}"
    if code == NO_LIST:
        return f"no revocation list is there for the authority of the client's certificate{who}: add it to crlfile"
    if code == LIST_EXPIRED:
        return "the revocation list has expired: put a new one into crlfile and reload"
    if code == PURPOSE:
        return f"the client's certificate{who} is not meant for clients (extended key usage)"
    return f"the client's certificate{who} was refused: {message}"


def maybe_leaf(tls: ssl.SSLObject | None) -> CertificateNames | None:
    """The names of the certificate that failed verification, where this Python shows it."""
    inner = tls if hasattr(tls, "get_verified_chain") else getattr(tls, "_sslobj", None)
    chain_of = getattr(inner, "get_verified_chain", None)
    if chain_of is None:
        return None
    try:
        first = (chain_of() or [None])[0]
        if first is None:
            return None
        der = first if isinstance(first, bytes) else ssl.PEM_cert_to_DER_cert(first.public_bytes())
        return names(der)
    except (BadDer, ssl.SSLError, ValueError, TypeError):
        return None
