"""Sessions of the console: who is signed in with which token, known by the hash of the cookie's secret."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import delete, or_, select, update

from services.contracts.access.identity import ApiToken, ConsoleSession
from services.round_store.database.queries import insert_new, rows_touched
from services.round_store.database.session import Repository, utc_now
from services.round_store.tables.access import ApiTokenRow, ConsoleSessionRow


class SessionRepository(Repository):
    """Sessions, each with the token that it was opened with. An ended session is a row that is gone."""

    def begin(self, secret_sha256: str, token_id: str, lifetime: timedelta) -> None:
        """Open a session; those that are over are swept away with it."""
        with self._scope.write() as session:
            now = utc_now(session)
            session.execute(delete(ConsoleSessionRow).where(ConsoleSessionRow.expires_at <= now))
            row = ConsoleSessionRow(
                secret_sha256=secret_sha256, token_id=token_id, created_at=now, last_used_at=now,
                expires_at=now + lifetime,
            )
            insert_new(session, row, "this session is there already")

    def find(self, secret_sha256: str) -> tuple[ConsoleSession, ApiToken] | None:
        """Session and its token, whether they still hold or not; None where there is none. One query."""
        wanted = select(ConsoleSessionRow, ApiTokenRow).join(
            ApiTokenRow, ApiTokenRow.token_id == ConsoleSessionRow.token_id
        )
        with self._scope.read() as session:
            found = session.execute(wanted.where(ConsoleSessionRow.secret_sha256 == secret_sha256)).first()
            return None if found is None else (_session(found[0]), ApiToken.of_record(found[1]))

    def touch(self, secret_sha256: str) -> None:
        """Note that a session was used."""
        with self._scope.write() as session:
            mine = update(ConsoleSessionRow).where(ConsoleSessionRow.secret_sha256 == secret_sha256)
            session.execute(mine.values(last_used_at=utc_now(session)))

    def end(self, session_id: str) -> bool:
        """End a session by its public id; whether there was one."""
        with self._scope.write() as session:
            mine = ConsoleSessionRow.secret_sha256.startswith(session_id, autoescape=True)
            return rows_touched(session.execute(delete(ConsoleSessionRow).where(mine))) > 0

    def sweep_sign_ins(self, prefix: str) -> None:
        """Forget tokens of this beginning that have ended and that no session stands on: a row was made for each."""
        with self._scope.write() as session:
            now = utc_now(session)
            session.execute(delete(ConsoleSessionRow).where(ConsoleSessionRow.expires_at <= now))
            ended = or_(ApiTokenRow.expires_at <= now, ApiTokenRow.revoked_at.is_not(None))
            theirs = ApiTokenRow.name.startswith(prefix, autoescape=True)
            used = ApiTokenRow.token_id.in_(select(ConsoleSessionRow.token_id))
            session.execute(delete(ApiTokenRow).where(theirs, ended, ~used))

    def list_sessions(self) -> list[ConsoleSession]:
        """Sessions that are not over by the clock, newest first."""
        with self._scope.read() as session:
            wanted = select(ConsoleSessionRow).where(ConsoleSessionRow.expires_at > utc_now(session))
            rows = session.scalars(wanted.order_by(ConsoleSessionRow.created_at.desc()))
            return [_session(row) for row in rows]


def _session(row: ConsoleSessionRow) -> ConsoleSession:
    return ConsoleSession.of_record(row, session_id=row.secret_sha256[: ConsoleSession.ID_DIGITS])
