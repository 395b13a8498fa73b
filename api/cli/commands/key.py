"""``ballast key``: the keys that all API processes of the service share."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from api.backend.actor import local_administrator
from api.backend.replaced_keys import replace_key
from api.backend.wiring import Backend
from api.cli.common import add_action, add_actions, add_reason, print_list, run_action, tell
from services.contracts.errors import BallastError
from services.contracts.plain_words import counted
from services.identity.service_keys import MEANINGS, WEBHOOKS, fingerprint, read_key

run = run_action
DIGITS = 16
"""Digits of a fingerprint that tables show."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    actions = add_actions(parser)
    add_action(actions, "list", _list, "list the keys by their fingerprints, in this home folder and in the store")
    about = "begin with a new key, which every home folder then needs a copy of"
    replace = add_action(actions, "replace", _replace, about, "NAME")
    replace.add_argument("--file", type=Path, help="take the key in this file: another home folder's, or a backup's")
    add_reason(replace, required=True)
    replace.epilog = "; ".join(f"{name}: {meaning}" for name, meaning in MEANINGS.items())


def _list(backend: Backend, args: argparse.Namespace) -> None:
    print_list(args, [_shown(backend, name) for name in MEANINGS], {
        "name": lambda each: each["name"], "here": lambda each: _short(each["here"]),
        "of the service": lambda each: _short(each["fingerprint"]), "since": lambda each: each["created_at"],
        "first used in": lambda each: each["home"], "status": lambda each: each["status"],
    })


def _shown(backend: Backend, name: str) -> dict[str, Any]:
    known = backend.store.service_keys.find(name)
    try:
        here = fingerprint(name, read_key(backend.service_keys.path(name)))
    except BallastError:
        here = None
    status = "unused" if known is None else "failed" if backend.service_keys.problem(name) else "ok"
    of_service = {"fingerprint": None, "home": None, "created_at": None} if known is None else dict(known)
    return {**of_service, "name": name, "here": here, "status": status}


def _short(digits: str | None) -> str | None:
    return None if digits is None else digits[:DIGITS]


def _replace(backend: Backend, args: argparse.Namespace) -> None:
    before = backend.store.service_keys.find(args.name)
    made = replace_key(backend, local_administrator(), args.name, args.reason, args.file)
    said = [
        f"{backend.service_keys.path(args.name)} has a key with the fingerprint {made[:DIGITS]}; copy the file to the "
        "home folders of all other API processes, and start all of them again",
    ]
    is_other = before is None or before.fingerprint != made
    signed = len(backend.store.webhooks.list_webhooks()) if args.name == WEBHOOKS and is_other else 0
    if signed:
        said.append(f"{counted(signed, 'webhook')} with another secret now: to be removed and added anew")
    value = {"name": args.name, "fingerprint": made, "webhooks_to_add_anew": signed}
    tell(args, value, *said)
