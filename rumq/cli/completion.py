"""`rumqd completion`: what completes rumqd's command line in bash, zsh and fish.

The shell asks rumqd itself for the words that may come, so that these are those of the installed version: commands,
flags, choices, and names of contexts. That takes as long as `rumqd --help`. Names of files are left to the shell."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any

from rumq.cli.parsers import LazyParser

ABOUT = """\
Print what has a shell complete the command line of rumqd. The Debian package installs it for bash, zsh and fish.
"""
EXAMPLES = """\
examples:
  eval "$(rumqd completion bash)"                for this shell; in ~/.bashrc for every one
  rumqd completion zsh > ~/.zfunc/_rumqd         a directory of $fpath
  rumqd completion fish > ~/.config/fish/completions/rumqd.fish
"""
# Exit status 3: there is nothing to choose from, so that the shell completes names of files.
FILES = 3
SCRIPTS = {
    "bash": """\
_rumqd() {
    local words IFS=$'\\n'
    words=$(rumqd completion --words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    if [ $? -eq 3 ]; then
        COMPREPLY=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}"))
        compopt -o filenames 2>/dev/null
    else
        COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
    fi
}
complete -F _rumqd rumqd
""",
    "zsh": """\
#compdef rumqd
_rumqd() {
    local -a found
    found=("${(@f)$(rumqd completion --words "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ ${#found} -eq 1 && -z "${found[1]}" ]]; then _files; else compadd -a found; fi
}
if [ "$funcstack[1]" = "_rumqd" ]; then _rumqd "$@"; else compdef _rumqd rumqd; fi
""",
    "fish": """\
function __rumqd_words
    set -l typed (commandline -opc) (commandline -ct)
    set -l found (rumqd completion --words $typed[2..-1] 2>/dev/null)
    if test (count $found) -eq 0
        __fish_complete_path (commandline -ct)
    else
        printf '%s\\n' $found
    end
end
complete -c rumqd -f -a '(__rumqd_words)'
""",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    # Behind it everything is what was typed so far: the last word is being typed, and may be empty.
    parser.add_argument("--words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.add_argument("shell", nargs="?", choices=sorted(SCRIPTS), help=", ".join(sorted(SCRIPTS)))


def run(args: argparse.Namespace) -> int:
    if args.words is not None:
        from rumq.cli.main import lazy_parser

        found = words_for(lazy_parser(), args.words or [""])
        for word in found or ():
            print(word)
        return 0 if found is not None else FILES
    if args.shell is None:
        import sys

        print("rumqd completion: name a shell: bash, fish or zsh", file=sys.stderr)
        return 2
    print(SCRIPTS[args.shell], end="")
    return 0


def words_for(parser: LazyParser, typed: Sequence[str]) -> list[str] | None:
    """Words that may stand where the last one is being typed; None: a value that is not known, such as a file."""
    # bash takes --sort=lag for three words.
    *before, word = [each for number, each in enumerate(typed) if each != "=" or number == 0] or [""]
    if len(typed) > 1 and typed[-1] == "=":
        before, word = [*before, word], ""
    positionals = positionals_of(parser)
    waits: argparse.Action | None = None  # the option whose value comes next
    place = 0
    for each in before:
        if waits is not None:
            waits = None
        elif each.startswith("-") and len(each) > 1:
            waits = waiting(parser, each)
        elif place < len(positionals) and isinstance(positionals[place], argparse._SubParsersAction):
            below = positionals[place].choices
            if not isinstance(below, dict) or each not in below:
                return []
            parser = below[each].filled()
            positionals, place = positionals_of(parser), 0
        else:
            place += place < len(positionals) and positionals[place].nargs not in (
                "*",
                "+",
                argparse.REMAINDER,
            )
    flag, equals, value = word.partition("=")
    if waits is None and equals and word.startswith("--"):
        waits = waiting(parser, flag)
        found = values_of(waits) if waits is not None else None
        return [f"{flag}={each}" for each in found if each.startswith(value)] if found is not None else None
    if waits is not None:
        found = values_of(waits)
    elif word.startswith("-"):
        found = flags_of(parser)
    else:
        found = values_of(positionals[place]) if place < len(positionals) else flags_of(parser)
    return [each for each in found if each.startswith(word)] if found is not None else None


def positionals_of(parser: LazyParser) -> list[argparse.Action]:
    return [each for each in parser.filled()._actions if not each.option_strings]


def flags_of(parser: LazyParser) -> list[str]:
    """Long ones; short ones where there is no long one."""
    found: list[str] = []
    for action in parser.filled()._actions:
        if action.help != argparse.SUPPRESS:
            long = [each for each in action.option_strings if each.startswith("--")]
            found += long or action.option_strings
    return found


def waiting(parser: LazyParser, flag: str) -> argparse.Action | None:
    """The option of a flag that takes a value, and has none yet."""
    action = parser.filled()._option_string_actions.get(flag)
    return action if action is not None and action.nargs != 0 else None


def values_of(action: argparse.Action) -> list[str] | None:
    choices: Any = action.choices
    if choices is not None:
        return [str(each) for each in choices]
    if action.dest == "context" or (action.dest == "name" and action.metavar == "NAME" and action.help is None):
        return context_names()
    return None


def context_names() -> list[str]:
    from rumq.cli.ask.contexts import load, path_of
    from rumq.errors import RumqError

    try:
        return sorted(load(path_of(os.environ)).contexts)
    except RumqError:
        return []
