"""`rumqd acl test`: what the rules permit a client, and which rules decide. Needs no broker."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from rumq.cli.setting_flags import add_setting_flags, loaded_settings
from rumq.errors import ConfigError, Fault

if TYPE_CHECKING:
    from rumq.auth.identity import Identity
    from rumq.auth.permit import Action
    from rumq.auth.rules import RuleSet

ACTIONS = ("publish", "subscribe", "replay", "retain", "will")

ABOUT = """\
Print whether an action on a topic or filter is permitted for a client, and the rules that decide it.
USER "-" is a client without user name.
"""
EXAMPLES = """\
examples:
  rumqd acl test alice pump-7 publish plant/7 --rules rules.toml
  rumqd acl test - sensor-1 subscribe 'plant/#' --rules rules.toml
  rumqd acl test alice pump-7 publish plant/7 -c config.toml

exit status: 0 permitted, wholly or in part; 1 not permitted; 2 invalid arguments or file
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=("test",), metavar="test", help="test one action")
    parser.add_argument("user", metavar="USER", help='its user name, "-" for none')
    parser.add_argument("client", metavar="CLIENT", help="its client id")
    parser.add_argument("action", metavar="ACTION", choices=ACTIONS, help=", ".join(ACTIONS))
    parser.add_argument("topic", metavar="TOPIC", help="a topic; for subscribe and replay a filter")
    parser.add_argument("--group", action="append", default=[], help="another group of the user")
    parser.add_argument("--rules", metavar="FILE", help="rules file [auth.rules_file of the settings]")
    add_setting_flags(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object: allowed, reach, rules")


def run(args: argparse.Namespace) -> int:
    """Returns the exit status; raises: ConfigError"""
    from rumq.auth.errors import SecretsError
    from rumq.auth.identity import Identity
    from rumq.mosquitto.errors import MosquittoFileError
    from rumq.process.listeners.listener_policies import rules_in

    path = args.rules or loaded_settings(args).settings.auth.rules_file
    if not path:
        if args.json:
            print(json.dumps({"allowed": True, "reach": "all", "rules": None}))
        else:
            print("yes: no rules are configured, everything is permitted")
        return 0
    try:
        rules = rules_in(path)
    except (SecretsError, MosquittoFileError) as fault:
        raise ConfigError(Fault("", "auth.rules_file", "", str(fault))) from None
    who = Identity(None if args.user == "-" else args.user, frozenset(args.group))
    return explain(rules, who, args.client, args.action, args.topic, as_json=args.json)


def explain(rules: RuleSet, who: Identity, client_id: str, action: Action, topic: str, *, as_json: bool = False) -> int:
    permit = rules.permit(who, client_id)
    reasons = rules.explain(who, client_id, action, topic)
    if action in ("subscribe", "replay"):
        reach = permit.reach(action, topic)
        words = {"all": "yes", "some": "in part: only what the rules allow is delivered", "none": "no"}[reach]
        allowed = reach != "none"
    else:
        allowed = permit.may(action, topic)
        reach = "all" if allowed else "none"
        words = "yes" if allowed else "no"
    if as_json:
        rows = [{"rule": reason.number, "effect": reason.effect, "filter": reason.topic_filter} for reason in reasons]
        print(json.dumps({"allowed": allowed, "reach": reach, "rules": rows}))
        return 0 if allowed else 1
    print(words)
    for reason in reasons:
        print(f"  rule {reason.number} {reason.effect} {action} {reason.topic_filter}")
    if not reasons:
        print("  no rule matches; the default is to deny")
    return 0 if allowed else 1
