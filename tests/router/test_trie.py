"""Filters against topics. MQTT 5.0, 4.7."""

from hypothesis import given
from hypothesis import strategies as st

from router.trie import FilterTrie
from rumq.mqtt.topics import matches

LEVELS = st.sampled_from(["a", "b", "", "$s"])
TOPICS = st.lists(LEVELS, min_size=1, max_size=4).map("/".join).filter(bool)
FILTERS = st.tuples(
    st.lists(st.sampled_from(["a", "b", "", "+", "$s"]), min_size=0, max_size=3), st.booleans()
).map(lambda f: "/".join([*f[0], "#"] if f[1] or not f[0] else f[0]))


@given(filters=st.lists(FILTERS, max_size=8), topic=TOPICS)
def test_the_trie_finds_what_the_rule_says(filters: list[str], topic: str) -> None:
    filters = [f for f in filters if f]
    trie = FilterTrie()
    for one in filters:
        trie.add(one)
    assert sorted(trie.match(topic)) == sorted({f for f in filters if matches(f, topic)})
    for one in filters:
        trie.discard(one)
    assert trie.match(topic) == [] and trie.count == 0
