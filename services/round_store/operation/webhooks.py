"""Webhooks: where events are sent, how far each has come, and when the next try is due."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, or_, select, update
from sqlalchemy.orm import Session

from services.contracts.errors import ConflictError
from services.contracts.history.events import Webhook
from services.round_store.database.documents import sentence
from services.round_store.database.queries import insert_new, rows_touched, stored_row
from services.round_store.database.session import Repository, utc_now
from services.round_store.tables.operation import WebhookRow

LATEST = timedelta(hours=2)
"""No try is due so late: a wait is an hour at most, and two clocks may differ a little."""


class WebhookRepository(Repository):
    """Webhooks by id. One process at a time delivers to each: it takes the webhook for a while before it does.

    Until when it took it tells its turn from all others: who stood still for longer notes nothing any more.
    """

    def add(self, webhook: Webhook) -> Webhook:
        """Store a webhook; ``ConflictError`` where its address is there."""
        with self._scope.write() as session:
            taken = f"events are sent to {webhook.url} already"
            if session.scalar(select(WebhookRow.webhook_id).where(WebhookRow.url == webhook.url)) is not None:
                raise ConflictError(taken)
            insert_new(session, WebhookRow(**(dict(webhook) | {"kinds": [*webhook.kinds]})), taken)
            return webhook

    def list_webhooks(self) -> list[Webhook]:
        """All webhooks, also disabled ones, by id."""
        wanted = select(WebhookRow).order_by(WebhookRow.webhook_id)
        with self._scope.read() as session:
            return [Webhook.of_record(row) for row in session.scalars(wanted)]

    def list_due(self, newest: int) -> list[Webhook]:
        """Webhooks that some event up to ``newest`` may be due to now, who has waited longest first."""
        with self._scope.read() as session:
            wanted = (
                select(WebhookRow)
                .where(WebhookRow.disabled_at.is_(None), _is_due(utc_now(session)),
                       WebhookRow.last_number < newest)
                .order_by(WebhookRow.due_at, WebhookRow.webhook_id)
            )
            return [Webhook.of_record(row) for row in session.scalars(wanted)]

    def get(self, webhook_id: str) -> Webhook:
        """Webhook by id; raise ``NotFoundError``."""
        with self._scope.read() as session:
            return Webhook.of_record(_row(session, webhook_id))

    def remove(self, webhook_id: str) -> Webhook:
        """Forget a webhook; raise ``NotFoundError``."""
        with self._scope.write() as session:
            row = _row(session, webhook_id, lock=True)
            gone = Webhook.of_record(row)
            session.delete(row)
            return gone

    def enable(self, webhook_id: str) -> Webhook:
        """Try a disabled webhook again at once, from the event on that did not arrive."""
        with self._scope.write() as session:
            row = _row(session, webhook_id, lock=True)
            row.disabled_at, row.failures, row.due_at = None, 0, utc_now(session)
            return Webhook.of_record(row)

    def take(self, webhook_id: str, seconds: float) -> datetime | None:
        """Take a webhook that is due; until when it is taken, None where another has it, or it is gone or disabled."""
        with self._scope.write() as session:
            now = utc_now(session)
            end = now + timedelta(seconds=seconds)
            taken = session.execute(
                update(WebhookRow)
                .where(WebhookRow.webhook_id == webhook_id, _is_due(now), WebhookRow.disabled_at.is_(None))
                .values(due_at=end)
            )
            return end if rows_touched(taken) == 1 else None

    def arrived(self, webhook_id: str, turn: datetime, number: int, *, sent: bool, release: bool) -> bool:
        """Note that all up to an event arrived, or concern nobody there (not ``sent``); give it back on ``release``.

        False where the webhook is gone, or the turn is another's: whoever sends to it stops.
        """
        with self._scope.write() as session:
            now = utc_now(session)
            values: dict[str, object] = {"last_number": number}
            if sent:
                values |= {"failures": 0, "last_failure": "", "delivered_at": now}
            if release:
                values["due_at"] = now
            mine = WebhookRow.webhook_id == webhook_id, WebhookRow.due_at == turn
            noted = session.execute(update(WebhookRow).where(*mine).values(**values))
            return rows_touched(noted) == 1

    def failed(
        self, webhook_id: str, turn: datetime, reason: str, wait_seconds: float, most: int
    ) -> Webhook | None:
        """Note a failure and when to try again; after ``most`` in a row disable it.

        None where it is gone, or the turn is another's.
        """
        with self._scope.write() as session:
            row = session.get(WebhookRow, webhook_id, with_for_update=True, populate_existing=True)
            if row is None or row.due_at != turn:
                return None
            now: datetime = utc_now(session)
            row.failures, row.last_failure = row.failures + 1, sentence(reason, 200)
            row.due_at = now + timedelta(seconds=wait_seconds)
            if row.failures >= most:
                row.disabled_at = now
            return Webhook.of_record(row)


def _is_due(now: datetime) -> ColumnElement[bool]:
    """Whether a try is due: its time is there, or was set before the clock was put back."""
    return or_(WebhookRow.due_at <= now, WebhookRow.due_at > now + LATEST)


def _row(session: Session, webhook_id: str, *, lock: bool = False) -> WebhookRow:
    return stored_row(session, WebhookRow, webhook_id, f"no webhook {webhook_id[:40]}", lock=lock)
