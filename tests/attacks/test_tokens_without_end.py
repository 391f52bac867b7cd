"""A token that holds for ever, or says so in numbers that no clock has: RFC 7519, 4.1.4; CWE-613."""

import json
from contextlib import suppress
from pathlib import Path

import jwt
import pytest

from rumq.auth.credentials.authenticator import outcome
from rumq.auth.credentials.tokens import Claims, TokenLogin, parse_keys
from rumq.auth.errors import Denied
from rumq.auth.identity import Credentials, Identity, Work
from tests.broker_process import Rumqd
from tests.conformance.peer import Peer
from tests.fuzz.auth import SECRET, signed

HUGE = "1" + "0" * 400
TIMES = [
    HUGE,
    "-" + HUGE,
    "NaN",
    "Infinity",
    "-Infinity",
    "1e400",
    "1e300",
    '"4e9 or so"',
    "[4000000000]",
    "{}",
    '""',
]


def shown(token: bytes, claims: Claims = Claims()) -> Identity:  # noqa: B008
    steps = TokenLogin(parse_keys(SECRET.decode(), "keys"), claims).check(Credentials("c", None, token))
    step = outcome(steps)
    assert isinstance(step, Work)
    found = outcome(steps, step.run())
    assert isinstance(found, Identity)
    return found


@pytest.mark.parametrize("claim", ["exp", "nbf", "iat"])
@pytest.mark.parametrize("time", TIMES)
def test_a_time_that_is_none_is_refused_and_nothing_else_happens(claim: str, time: str) -> None:
    token = signed(b'{"alg":"HS256"}', f'{{"sub":"anna","{claim}":{time}}}'.encode())
    with suppress(Denied):
        assert shown(token).expires_us is None and claim != "exp"


def test_a_token_without_end_is_taken_unless_that_is_forbidden() -> None:
    forever = jwt.encode({"sub": "anna"}, SECRET, "HS256").encode()
    dated = jwt.encode({"sub": "anna", "exp": 4_000_000_000}, SECRET, "HS256").encode()
    strict = Claims(expiry_required=True)
    assert shown(forever).expires_us is None
    assert shown(dated, strict).expires_us == 4_000_000_000_000_000
    for null in (forever, signed(b'{"alg":"HS256"}', b'{"sub":"anna","exp":null}')):
        with pytest.raises(Denied, match="exp"):
            shown(null, strict)


def test_a_broker_tells_such_a_token_from_a_good_one(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.touch(mode=0o600)
    keys.write_bytes(SECRET)
    broker = Rumqd(
        tmp_path / "data", "--set", f"auth.token_keys_file={keys}", "--set", "auth.token_expiry_required=true",
    )  # fmt: skip
    broker.start()
    try:
        tokens = [
            signed(b'{"alg":"HS256"}', json.dumps({"sub": "a"} | more).replace("0.5", HUGE).encode())
            for more in ({"exp": 0.5}, {}, {"exp": 4_000_000_000})
        ]
        codes = [Peer(broker.address).connect("c", username="a", password=token).code for token in tokens]
        assert codes == [0x87, 0x87, 0]
        assert not broker.named("client.crashed", "auth.failed")
    finally:
        broker.end()
