"""What was sealed comes back whole, until its time; nothing else opens."""

from rumq.auth.credentials.seal import Seal


def test_only_what_was_sealed_here_opens_and_until_its_time() -> None:
    seal = Seal()
    made = seal.sealed("Basic c2VjcmV0", 100)
    assert "c2VjcmV0" not in made
    assert made != seal.sealed("Basic c2VjcmV0", 100)
    assert seal.maybe_opened(made, 99.9) == "Basic c2VjcmV0"
    assert seal.maybe_opened(made, 100.0) is None
    assert Seal().maybe_opened(made, 0) is None
    for wrong in ("", "x", "é", made[:-8], ("B" if made[0] == "A" else "A") + made[1:], "A" * 8, made[4:]):
        assert seal.maybe_opened(wrong, 0) is None
