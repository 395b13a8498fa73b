"""``ballast token``: API tokens."""

from __future__ import annotations

import argparse
import re
import sys
from datetime import UTC, datetime, timedelta

from api.backend.actor import local_administrator
from api.backend.wiring import Backend
from api.cli.common import add_action, add_actions, checked, print_json, print_list, run_action, tell
from api.tokens import service as tokens
from api.tokens.schemas import TokenRequest
from services.contracts.access.identity import Role
from services.contracts.errors import InvalidInputError
from services.identity.roles import Permission

run = run_action


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    actions = add_actions(parser)
    create = add_action(actions, "create", _create, "make a token and print it, this once", lists=True)
    create.add_argument("--role", required=True, choices=[role.value for role in Role], help="what its holder may do")
    create.add_argument("--name", required=True, help="who or what will hold it")
    create.add_argument(
        "--expires", metavar="WHEN",
        help="when it ends: in hours or days (12h, 90d), or at a date (2027-01-31); default: when it is revoked",
    )
    create.add_argument("--days", type=float, help="the same in days")
    create.add_argument(
        "--scope", action="append", choices=[each.value for each in Permission],
        help="narrow it to this kind of action; repeatable (default: all that the role may do)",
    )
    add_action(actions, "list", _list, "list tokens, without their secrets", lists=True)
    add_action(actions, "revoke", _revoke, "revoke a token for good", "TOKEN_ID", reason=True)


def _create(backend: Backend, args: argparse.Namespace) -> None:
    expires = None if args.expires is None else read_end(args.expires, datetime.now(UTC))
    scopes = tuple(args.scope) if args.scope else None
    wanted = checked(
        TokenRequest, "token", name=args.name, role=args.role, days=args.days, expires_at=expires, scopes=scopes
    )
    made = tokens.create(backend, local_administrator(), wanted)
    if args.json:
        print_json(made)
    else:
        print(f"token {made.token_id} for {made.name} ({made.role.value}), shown this once:", file=sys.stderr)
        print(made.token)


def read_end(text: str, now: datetime) -> datetime:
    """Moment at which something ends: ``12h`` or ``90d`` from now, or a date, whose day begins in UTC.

    :class:`InvalidInputError` where it is neither, or past the last date that there is.
    """
    found = re.fullmatch(r"([0-9]{1,9})([hd])", text)
    if found:
        number = int(found[1])
        try:
            return now + (timedelta(hours=number) if found[2] == "h" else timedelta(days=number))
        except OverflowError:
            raise InvalidInputError(f"{text} is later than any date: give 12h, 90d or a date") from None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInputError(f"{text[:40]!r} is no end: give 12h, 90d or a date such as 2027-01-31") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _list(backend: Backend, args: argparse.Namespace) -> None:
    shown = ("token_id", "name", "role", "scopes", "created_at", "expires_at", "revoked_at", "last_used_at")
    print_list(args, backend.store.tokens.list_tokens(), {name.replace("_", " "): name for name in shown})


def _revoke(backend: Backend, args: argparse.Namespace) -> None:
    token = tokens.revoke(backend, local_administrator(), args.token_id, args.reason)
    tell(args, token, f"token {token.token_id} ({token.name}) is revoked")
