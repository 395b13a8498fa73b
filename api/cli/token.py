"""``ballast token``: API tokens."""

from __future__ import annotations

import argparse
import sys

from api.backend.actor import local_administrator
from api.backend.wiring import Backend
from api.cli.common import add_action, add_actions, checked, print_json, print_list, run_action
from api.tokens import service as tokens
from api.tokens.schemas import TokenRequest
from services.contracts.identity import Role

run = run_action


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    actions = add_actions(parser)
    create = add_action(actions, "create", _create, "make a token and print it, this once", lists=True)
    create.add_argument("--role", required=True, choices=[role.value for role in Role], help="what its holder may do")
    create.add_argument("--name", required=True, help="who or what will hold it")
    create.add_argument("--days", type=float, help="how long it holds (default: until it is revoked)")
    add_action(actions, "list", _list, "list tokens, without their secrets", lists=True)
    add_action(actions, "revoke", _revoke, "revoke a token for good", "TOKEN_ID", reason=True)


def _create(backend: Backend, args: argparse.Namespace) -> None:
    wanted = checked(TokenRequest, "token", name=args.name, role=args.role, days=args.days)
    made = tokens.create(backend, local_administrator(), wanted)
    if args.json:
        print_json(made)
    else:
        print(f"token {made.token_id} for {made.name} ({made.role.value}), shown this once:", file=sys.stderr)
        print(made.token)


def _list(backend: Backend, args: argparse.Namespace) -> None:
    shown = ("token_id", "name", "role", "created_at", "expires_at", "revoked_at", "last_used_at")
    print_list(args, backend.store.tokens.list_tokens(), {name.replace("_", " "): name for name in shown})


def _revoke(backend: Backend, args: argparse.Namespace) -> None:
    token = tokens.revoke(backend, local_administrator(), args.token_id, args.reason)
    print(f"token {token.token_id} ({token.name}) is revoked")
