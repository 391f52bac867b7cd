"""A verification is cached for a while, by a keyed digest. The time is an argument."""

from rumq.auth.credentials.verification_cache import VerificationCache


def test_an_answer_is_there_until_its_time_is_over() -> None:
    cache: VerificationCache[str] = VerificationCache(10.0)
    digest = cache.digest(b"anna", b"secret")
    cache.put(digest, "yes", 0.0)
    assert cache.maybe_answer(digest, 9.9) == "yes"
    assert cache.maybe_answer(digest, 10.0) is None and not len(cache)


def test_an_answer_with_a_lifetime_of_its_own_never_lasts_longer_than_the_cache() -> None:
    cache: VerificationCache[str] = VerificationCache(10.0)
    for seconds, lasts in ((5.0, 5.0), (60.0, 10.0)):
        digest = cache.digest(str(seconds).encode())
        cache.put(digest, "yes", 0.0, seconds)
        assert cache.maybe_answer(digest, lasts - 0.1) and not cache.maybe_answer(digest, lasts)
    cache.put(b"never", "yes", 0.0, 0.0)
    assert not len(cache)


def test_a_maximum_of_0_caches_nothing() -> None:
    cache: VerificationCache[str] = VerificationCache(0.0)
    cache.put(b"digest", "yes", 0.0)
    assert not len(cache)


def test_its_size_is_bounded_and_the_oldest_goes() -> None:
    cache: VerificationCache[int] = VerificationCache(10.0, entries_max=2)
    for number in range(3):
        cache.put(bytes([number]), number, 0.0)
    assert [cache.maybe_answer(bytes([number]), 1.0) for number in range(3)] == [None, 1, 2]
    cache.forget()
    assert not len(cache)


def test_digests_differ_between_caches_and_where_the_parts_are_cut() -> None:
    one: VerificationCache[bool] = VerificationCache(1.0)
    other: VerificationCache[bool] = VerificationCache(1.0)
    assert one.digest(b"ab", b"c") == one.digest(b"ab", b"c") != one.digest(b"a", b"bc")
    assert one.digest(b"a") != other.digest(b"a"), "a file of digests of one process tells nothing about another"
