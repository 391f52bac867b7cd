"""Unknown users look like known ones: the same decoy each time, of kinds as frequent as those of real users."""

from collections import Counter

from rumq.auth.credentials.decoy_hashes import DecoyHashes


def kind(text: str) -> str:
    return text[0]


def test_a_user_keeps_its_decoy_as_long_as_the_secret_is_the_same() -> None:
    known = ["a1", "a2", "b1"]
    one, same = DecoyHashes(known, kind, b"secret"), DecoyHashes(known, kind, b"secret")
    users = [f"user {number}" for number in range(100)]
    assert [one.hash_for(user) for user in users] == [same.hash_for(user) for user in users]
    other = DecoyHashes(known, kind, b"another")
    assert [one.hash_for(user) for user in users] != [other.hash_for(user) for user in users]


def test_kinds_are_as_frequent_as_among_known_users() -> None:
    decoys = DecoyHashes(["a"] * 30 + ["b"] * 10, kind, b"secret")
    found = Counter(decoys.hash_for(f"user {number}") for number in range(4000))
    assert 2800 < found["a"] < 3200


def test_few_users_change_their_decoy_when_a_known_one_is_added() -> None:
    before = DecoyHashes(["a"] * 50 + ["b"] * 50, kind, b"secret")
    after = DecoyHashes(["a"] * 50 + ["b"] * 51, kind, b"secret")
    assert sum(before.hash_for(f"u{number}") != after.hash_for(f"u{number}") for number in range(1000)) < 30


def test_with_one_kind_there_is_no_choice() -> None:
    assert DecoyHashes(["a1", "a2"], kind, b"secret").hash_for("\ud800") == "a1"
