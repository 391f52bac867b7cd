"""What is written for other processes of a broker says the same as what the program gave."""

import tomllib

from rumq.embedded.toml_text import toml_of
from rumq.settings.load import load_settings


def test_it_reads_back_as_it_was() -> None:
    tree = {
        "data": {"dir": '/tmp/a "b"'},
        "log": {"durability": "process", "linger_ms": 5},
        "stream": [{"name": "a", "filters": ["a/#"], "partitions": 2}, {"name": "b", "filters": ["b/+"]}],
    }
    assert tomllib.loads(toml_of(tree)) == tree
    assert load_settings(tree=("a program", tree)).settings.stream[0].partitions == 2
