"""An attacker asks for names, to learn which of them are users: by salts, by how a challenge looks, by how much it
takes to say no, before and after a restart and in each shard. CWE-204, CWE-208; RFC 5802, 9."""

import base64
from collections import Counter
from pathlib import Path

import pytest

from rumq.auth.credentials import hashes
from rumq.auth.credentials.authenticator import outcome
from rumq.auth.credentials.passwords import Passwords
from rumq.auth.credentials.scram import Scram
from rumq.auth.credentials.verification_cache import VerificationCache
from rumq.auth.errors import Denied
from rumq.auth.identity import Challenge, Credentials, Work
from rumq.process.listeners.broker_secret import make_secret, maybe_secret
from tests.broker_process import Rumqd
from tests.conformance import wire
from tests.conformance.peer import Peer
from tests.conformance.wire import Kind, Prop

SECRET, SALT = bytes(range(32)), b"sixteen bytes..."
METHOD = "SCRAM-SHA-256"


def challenge(scram: Scram, user: str) -> tuple[str, int]:
    """(salt, iterations) that a client is told."""
    step = outcome(scram.check(Credentials("c", method=METHOD, data=f"n,,n={user},r=abc".encode())))
    assert isinstance(step, Challenge)
    fields = dict(part.split("=", 1) for part in step.data.decode().split(","))
    return fields["s"], int(fields["i"])


def test_a_made_up_salt_is_the_same_wherever_and_whenever_it_is_asked_for() -> None:
    users = {"anna": hashes.scram(b"p", SALT, 4096)}
    assert challenge(Scram(users, SECRET), "nobody") == challenge(Scram(users, SECRET), "nobody")
    assert challenge(Scram(users, SECRET), "nobody") != challenge(Scram(users, SECRET), "no one")
    assert challenge(Scram(users, SECRET), "nobody") != challenge(Scram(users, bytes(32)), "nobody")
    more = users | {"ben": hashes.scram(b"p", SALT, 4096)}
    assert challenge(Scram(more, SECRET), "nobody") == challenge(Scram(users, SECRET), "nobody")


def test_made_up_challenges_are_of_the_forms_that_real_ones_have_and_as_frequent() -> None:
    users = {f"u{n}": hashes.scram(b"p", SALT, 4096) for n in range(3)}
    users["old"] = hashes.scram(b"p", b"eight by", 10_000)
    scram = Scram(users, SECRET)
    asked = [challenge(scram, f"nobody-{n}") for n in range(2000)]
    seen = Counter((len(base64.b64decode(salt)), iterations) for salt, iterations in asked)
    assert seen.keys() == {(16, 4096), (8, 10_000)}
    assert 0.70 < seen[16, 4096] / 2000 < 0.80, "three of four users have it"


def checked(passwords: Passwords, user: str, password: bytes, monkeypatch: pytest.MonkeyPatch) -> str:
    """The hash that a wrong password is checked against."""
    seen: list[str] = []
    monkeypatch.setattr(hashes, "verify", lambda text, password: seen.append(text) or False)
    steps = passwords.check(Credentials("c", user, password))
    step = outcome(steps)
    assert isinstance(step, Work)
    try:
        outcome(steps, step.run())
    except Denied:
        pass
    return seen[0]


def test_an_unknown_name_costs_what_known_ones_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """argon2id takes 20 ms, mosquitto's hashes a tenth of one: a stand-in of one kind tells all users of the other."""
    users = {f"new{n}": "$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0c2E$x" for n in range(2)}
    users |= {f"old{n}": hashes.pbkdf2_sha512(b"x", SALT, 101) for n in range(2)}
    passwords = Passwords(users, VerificationCache(0.0), SECRET)
    found = {f"nobody{n}": hashes.cost_of(checked(passwords, f"nobody{n}", b"x", monkeypatch)) for n in range(400)}
    counts = Counter(found.values())
    assert counts.keys() == {"$argon2id$v=19$m=19456,t=2,p=1", "$7$101"}
    assert all(140 < count < 260 for count in counts.values())
    again = Passwords(users, VerificationCache(0.0), SECRET)
    assert all(hashes.cost_of(checked(again, name, b"y", monkeypatch)) == cost for name, cost in found.items())
    assert checked(passwords, "old1", b"x", monkeypatch) == users["old1"]


@pytest.mark.parametrize("kind", [hashes.argon2id, hashes.scram, hashes.pbkdf2_sha512])
def test_nothing_is_no_password_even_where_a_hash_of_nothing_stands(kind: object) -> None:
    steps = Passwords({"anna": kind(b"", SALT)}, VerificationCache(60.0), SECRET).check(  # type: ignore[operator]
        Credentials("c", "anna", b"")
    )
    step = outcome(steps)
    assert isinstance(step, Work), "it takes as long as any"
    with pytest.raises(Denied) as denied:
        outcome(steps, step.run())
    assert denied.value.reason == 0x86


def test_nothing_is_no_password_for_scram_either() -> None:
    users = {"anna": hashes.scram(b"", SALT, 4096)}
    steps = Scram(users, SECRET).check(Credentials("c", method=METHOD, data=b"n,,n=anna,r=abc"))
    step = outcome(steps)
    assert isinstance(step, Challenge)
    offer = step.data.decode()
    work = outcome(steps, proof(b"", offer, "n=anna,r=abc"))
    assert isinstance(work, Work), "the proof is right"
    found = work.run()
    with pytest.raises(Denied) as denied:
        outcome(steps, found)
    assert "empty" in denied.value.why


def proof(password: bytes, offer: str, bare: str) -> bytes:
    """What a client answers that has the password. RFC 5802, 3"""
    import hashlib
    import hmac

    fields = dict(part.split("=", 1) for part in offer.split(","))
    salted = hashlib.pbkdf2_hmac("sha256", password, base64.b64decode(fields["s"]), int(fields["i"]))
    client = hmac.digest(salted, b"Client Key", "sha256")
    final = f"c=biws,r={fields['r']}"
    signature = hmac.digest(hashlib.sha256(client).digest(), f"{bare},{offer},{final}".encode(), "sha256")
    made = bytes(a ^ b for a, b in zip(client, signature, strict=True))
    return f"{final},p={base64.b64encode(made).decode()}".encode()


def test_the_secret_is_made_once_and_is_its_owner_s_alone(tmp_path: Path) -> None:
    assert maybe_secret(str(tmp_path)) is None
    make_secret(str(tmp_path))
    first = maybe_secret(str(tmp_path))
    make_secret(str(tmp_path))
    assert first is not None and maybe_secret(str(tmp_path)) == first
    assert (tmp_path / "SECRET").stat().st_mode & 0o777 == 0o600
    (tmp_path / "SECRET").write_text("torn")
    make_secret(str(tmp_path))
    assert maybe_secret(str(tmp_path)) not in (None, first)


def test_two_shards_and_two_runs_tell_the_same_salt(tmp_path: Path) -> None:
    """Client ids that live in different shards, before and after a restart."""
    users = tmp_path / "users"
    users.touch(mode=0o600)
    users.write_text(f"anna:{hashes.scram(b'p', SALT, 4096)}\n")
    broker = Rumqd(tmp_path / "data", "--set", "shards.count=2", "--set", f"auth.password_file={users}")
    told: list[bytes] = []
    for _ in range(2):
        broker.start()
        try:
            for number in range(8):
                peer = Peer(broker.address)
                first = [(Prop.AUTH_METHOD, METHOD), (Prop.AUTH_DATA, b"n,,n=nobody,r=abc")]
                peer.send(wire.connect(f"c{number}", properties=first))
                told.append(dict(peer.expect(Kind.AUTH).properties)[Prop.AUTH_DATA])
                peer.close()
        finally:
            broker.end()
    salts = {data.partition(b",s=")[2] for data in told}
    assert len(told) == 16 and len(salts) == 1, salts
