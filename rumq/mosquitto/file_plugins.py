"""mosquitto 2.1's plugins that read a password file or an ACL file: the listener gets the file's setting instead."""

from __future__ import annotations

from typing import NamedTuple

from rumq.mosquitto.conf import ListenerPart, OptionLine


class FilePlugin(NamedTuple):
    """library: part of its file's name; option: that names the file; key: of a listener"""

    library: str
    option: str
    key: str


FILE_PLUGINS = (
    FilePlugin("mosquitto_password_file", "plugin_opt_password_file", "password_file"),
    FilePlugin("mosquitto_acl_file", "plugin_opt_acl_file", "rules_file"),
)


class FoundFile(NamedTuple):
    """plugin: the line that loads it; file: the line that names its file; key: of a listener"""

    plugin: OptionLine
    file: OptionLine
    key: str


def files_of(plugins: list[OptionLine], *parts: ListenerPart) -> list[FoundFile]:
    """What settings of rumq do in place of these plugins. parts: where options of plugins are, the nearest first"""
    found = []
    for line in plugins:
        for each in FILE_PLUGINS:
            named = [part.options[each.option] for part in parts if each.option in part.options]
            if each.library in line.value and named:
                found.append(FoundFile(line, named[0], each.key))
    return found
