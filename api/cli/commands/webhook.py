"""``ballast webhook``: events, sent to addresses."""

from __future__ import annotations

import argparse
import sys

from api.backend.actor import local_administrator
from api.backend.wiring import Backend
from api.cli.common import add_action, add_actions, checked, print_json, print_list, run_action, tell
from api.webhooks import service as webhooks
from api.webhooks.schemas import WebhookRequest
from services.contracts.history.events import KINDS

run = run_action


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions."""
    actions = add_actions(parser)
    about = "send events to an address, and print the secret that signs them"
    add = add_action(actions, "add", _add, about, lists=True)
    add.add_argument("url", metavar="URL", help="https://host/path, or http:// on the loopback")
    add.add_argument(
        "--kind", action="append", default=[], choices=KINDS, metavar="KIND",
        help=f"only events of this kind; repeatable: {', '.join(KINDS)}",
    )
    add_action(actions, "list", _list, "list webhooks, without their secrets", lists=True)
    add_action(actions, "remove", _remove, "send nothing there any more", "WEBHOOK_ID", reason=True)
    about = "send there again after repeated failures"
    add_action(actions, "enable", _enable, about, "WEBHOOK_ID", reason=True)
    add_action(actions, "test", _test, "send a test message now", "WEBHOOK_ID", lists=True)


def _add(backend: Backend, args: argparse.Namespace) -> None:
    wanted = checked(WebhookRequest, "webhook", url=args.url, kinds=tuple(args.kind))
    made = webhooks.add(backend, local_administrator(), wanted)
    if args.json:
        print_json(made)
        return
    print(f"webhook {made.webhook.webhook_id}; the secret of its signatures, shown this once:", file=sys.stderr)
    print(made.secret)


def _list(backend: Backend, args: argparse.Namespace) -> None:
    print_list(args, backend.store.webhooks.list_webhooks(), {
        "id": "webhook_id", "url": "url", "kinds": lambda each: each.kinds or "all", "goes on after": "last_number",
        "delivered at": "delivered_at", "failures": "failures", "last failure": "last_failure",
        "disabled at": "disabled_at",
    })


def _remove(backend: Backend, args: argparse.Namespace) -> None:
    gone = webhooks.remove(backend, local_administrator(), args.webhook_id, args.reason)
    tell(args, gone, f"nothing is sent to {gone.url} any more")


def _enable(backend: Backend, args: argparse.Namespace) -> None:
    found = webhooks.enable(backend, local_administrator(), args.webhook_id, args.reason)
    tell(args, found, f"events are sent to {found.url} again")


def _test(backend: Backend, args: argparse.Namespace) -> int:
    found = webhooks.test(backend, args.webhook_id)
    tell(args, found, "it arrived" if found.delivered else f"it did not arrive: {found.reason}")
    return 0 if found.delivered else 1
