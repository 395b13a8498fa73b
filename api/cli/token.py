"""``ballast token``: API tokens."""

from __future__ import annotations

import argparse
import sys

from pydantic import ValidationError

from api.cli.common import add_action, add_actions, add_reason, opened, print_json, print_table
from api.schemas import TokenRequest
from api.use_cases import tokens
from api.use_cases.actor import local_administrator
from services.contracts.asset_type import explain
from services.contracts.errors import InvalidInputError
from services.contracts.identity import Role


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    actions = add_actions(parser)
    create = add_action(actions, "create", _create, "make a token and print it, this once", lists=True)
    create.add_argument("--role", required=True, choices=[role.value for role in Role], help="what its holder may do")
    create.add_argument("--name", required=True, help="who or what will hold it")
    create.add_argument("--days", type=float, help="how long it holds (default: until it is revoked)")
    add_action(actions, "list", _list, "list tokens, without their secrets", lists=True)
    revoke = add_action(actions, "revoke", _revoke, "revoke a token for good")
    revoke.add_argument("token_id", metavar="TOKEN_ID")
    add_reason(revoke)


def run(args: argparse.Namespace) -> int:
    """Do the action."""
    code: int = args.do(args)
    return code


def _create(args: argparse.Namespace) -> int:
    try:
        wanted = TokenRequest(name=args.name, role=args.role, days=args.days)
    except ValidationError as error:
        raise InvalidInputError(f"token: {explain(error)}") from None
    with opened(args) as backend:
        made = tokens.create(backend, local_administrator(), wanted)
    if args.json:
        print_json(made)
        return 0
    print(f"token {made.token_id} for {made.name} ({made.role.value}), shown this once:", file=sys.stderr)
    print(made.token)
    return 0


def _list(args: argparse.Namespace) -> int:
    with opened(args) as backend:
        found = backend.store.tokens.list_tokens()
    if args.json:
        print_json(found)
        return 0
    shown = ("token_id", "name", "role", "created_at", "expires_at", "revoked_at", "last_used_at")
    print_table([name.replace("_", " ") for name in shown], ([getattr(item, name) for name in shown] for item in found))
    return 0


def _revoke(args: argparse.Namespace) -> int:
    with opened(args) as backend:
        token = tokens.revoke(backend, local_administrator(), args.token_id, args.reason)
    print(f"token {token.token_id} ({token.name}) is revoked")
    return 0
