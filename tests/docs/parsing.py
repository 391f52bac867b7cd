"""What a command of the documents names must exist: commands and flags of rumqd, settings, scripts, paths of REST.

It is checked without running anything, so it holds also where a command needs three machines, or root."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import itertools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from rumq.cli.main import build_parser, normalize_arguments
from rumq.gateway.contract.openapi import description
from rumq.settings.keys import KEYS, LISTENER, STREAM, VARIABLES, VIEW

ROOT = Path(__file__).parents[2]
# What stands for a value that only the reader knows.
PLACEHOLDERS = ((re.compile(r"\bPORT_OF_N\d\b"), "1883"), (re.compile(r"\bPID(_OF_N\d)?\b"), "4711"))
REST = {
    *description("")["paths"],
    "/api/v1/openapi.json",
    "/api/v1/docs",
    "/metrics",
    "/healthz",
    "/readyz",
    "/startupz",
}
# Of paths with parameters; a topic may have slashes, and a label may be a variable of the shell.
REST_TEMPLATES = [
    re.compile(re.sub(r"\\\{\w+\\\}", ".+", re.escape(path))) for path in description("")["paths"] if "{" in path
]
# Programs of others: what they take is theirs to know.
OTHERS = {
    "apt", "apt-get", "awk", "cat", "cd", "chmod", "cp", "curl", "date", "cut", "diff", "do", "docker", "done", "echo",
    "etcdctl", "export", "git", "grep", "head", "helm", "install", "journalctl", "jq", "kill", "kubectl", "ls",
    "mkdir", "mosquitto_pub", "mosquitto_sub", "mv", "openssl", "perl", "pgrep", "pip", "printf",
    "prometheus", "promtool", "python3", "read", "rm", "scp", "sed", "set", "sha256sum", "sleep", "sort", "source",
    "ssh", "sudo", "systemctl", "systemd-analyze", "systemd-sysusers", "systemd-tmpfiles", "tail", "tee", "tar",
    "test", "touch", "tr", "true", "until", "venv-pack", "wait", "wc",
}  # fmt: skip
ASSIGNED = re.compile(r"^\w+=")
BEFORE = {"sudo", "exec", "do", "then", "else", "until", "while", "if", "!", "time"}
SEPARATORS = {"&&", "||", "|", ";", "&"}
REDIRECTED = re.compile(r"(?<=\s)[012]?(?:>>?|<<?)(?:&[012]|\s*[^\s&|;]+)")
SUBSTITUTED = re.compile(r"\$\(([^()]*)\)")


def faults_in(command: str) -> Iterator[str]:
    """What is wrong with one command of a shell block, in words."""
    for pattern, value in PLACEHOLDERS:
        command = pattern.sub(value, command)
    command = re.sub(r"(<<\s*['\"]?(\w+)['\"]?[^\n]*)\n.*\n\2$", r"\1", command, flags=re.S)  # here-documents
    yield from rest_faults(command)
    for inner in SUBSTITUTED.findall(command):
        yield from faults_in(inner)
    try:
        for words in simple_commands(SUBSTITUTED.sub("SUBSTITUTED", command)):
            yield from word_faults(words)
    except ValueError as fault:
        yield f"{command}: {fault}"


def simple_commands(command: str) -> Iterator[list[str]]:
    """The words of each command of a list or pipeline, without assignments and redirections."""
    plain = REDIRECTED.sub(" ", command.replace("\\\n", " "))
    lexer = shlex.shlex(plain, posix=True, punctuation_chars="|&;")
    lexer.whitespace_split, lexer.commenters = True, "#"
    words: list[str] = []
    for word in [*lexer, ";"]:
        if word in SEPARATORS:
            while words and (ASSIGNED.match(words[0]) or words[0] in BEFORE):
                words = words[3:] if words[:2] == ["sudo", "-u"] else words[1:]
            if words and words[0] not in ("for", "done", "fi", ".", "export"):
                yield words
            words = []
        else:
            words.append(word)


def word_faults(words: list[str]) -> Iterator[str]:
    program = words[0]
    if program.rpartition("/")[2] == "rumqd" or words[1:3] == ["-m", "rumq"]:
        yield from rumqd_faults(words[3:] if words[1:2] == ["-m"] else words[1:])
    elif program.rpartition("/")[2].startswith("python"):
        yield from python_faults(words[1:])
    elif program in ("./run", "./test") or program.startswith(("packaging/", "examples/")):
        yield from missing(program)
        if program == "./test":
            yield from (fault for word in words[1:] if word.startswith("tests/") for fault in missing(word))
    elif not program.startswith(".venv/bin/") and program.removeprefix("/opt/rumq/bin/") not in OTHERS:
        yield f"{program}: a program that no document names so far; if it is meant, add it to OTHERS"


def rumqd_faults(arguments: list[str]) -> Iterator[str]:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            build_parser().parse_args(normalize_arguments(arguments))
    except SystemExit as end:
        if end.code:
            yield f"rumqd {shlex.join(arguments)}: {said.getvalue().strip().splitlines()[-1]}"
    for before, word in itertools.pairwise(arguments):
        if before == "--set":
            yield from key_faults(word.partition("=")[0])


def key_faults(key: str) -> Iterator[str]:
    if key not in KEYS and key not in (STREAM, LISTENER, VIEW):
        yield f"{key}: no such setting"


def python_faults(arguments: list[str]) -> Iterator[str]:
    if arguments[:1] == ["-m"]:
        if importlib.util.find_spec(arguments[1]) is None:
            yield f"python -m {arguments[1]}: no such module"
    elif arguments and not arguments[0].startswith("-"):
        yield from missing(arguments[0])


def missing(path: str) -> Iterator[str]:
    if not (ROOT / path.partition("::")[0]).exists():
        yield f"{path}: no such file"


def rest_faults(text: str) -> Iterator[str]:
    """Paths of the gateway that it does not have."""
    text = re.sub(r"localhost:9090\S*", "", text)  # Prometheus, which has paths of its own
    for path in re.findall(r"(/api/v1/[\w./-]*|(?<=\d)/(?:metrics|healthz|readyz|startupz)\b)", text):
        written = path.rstrip("/.")
        if written not in REST and path != "/api/v1/" and not any(each.fullmatch(written) for each in REST_TEMPLATES):
            yield f"{path}: no such path of REST"


def variable_faults(text: str) -> Iterator[str]:
    """Environment variables that look like settings and are none."""
    sections = "|".join(sorted({name.split("_")[1] for name in VARIABLES}))
    for name in re.findall(rf"\b(RUMQ_(?:{sections})_[A-Z_]+)\b", text):
        if name not in VARIABLES:
            yield f"{name}: no such setting"
