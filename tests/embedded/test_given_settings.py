"""Settings as a program gives them become those of config.toml."""

from pathlib import Path

import pytest

from rumq.embedded.given_settings import Given, settings_tree


@pytest.mark.parametrize(
    ("settings", "sections", "tree"),
    [
        (None, {}, {}),
        ({"log": {"durability": "process"}}, {}, {"log": {"durability": "process"}}),
        ({"log.durability": "process"}, {}, {"log": {"durability": "process"}}),
        ({}, {"log": {"durability": "process"}}, {"log": {"durability": "process"}}),
        ({"log.linger_ms": 1, "log": {"durability": "disk"}}, {}, {"log": {"linger_ms": 1, "durability": "disk"}}),
        ({"log.durability": "disk"}, {"log": {"durability": "process"}}, {"log": {"durability": "process"}}),
        ({}, {"stream": ({"name": "a", "filters": ("a/#",)},)}, {"stream": [{"name": "a", "filters": ["a/#"]}]}),
        ({"auth.password_file": Path("/etc/users")}, {}, {"auth": {"password_file": "/etc/users"}}),
        ({"log": 1}, {}, {"log": 1}),  # the broker's process says what is wrong with it
        ({"log": 1}, {"log": {"linger_ms": 1}}, {"log": {"linger_ms": 1}}),
    ],
)
def test_sections_dotted_keys_and_keywords_are_one(settings: Given | None, sections: Given, tree: Given) -> None:
    assert settings_tree(settings, sections) == tree
