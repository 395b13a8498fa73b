"""API tokens, with the hashes of their secrets."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import or_, select, update

from services.contracts.access.identity import ApiToken, StoredToken
from services.contracts.errors import ConflictError
from services.round_store.database.queries import insert_new, rows_touched, stored_row
from services.round_store.database.session import Repository, utc_now
from services.round_store.tables.access import ApiTokenRow

TOUCH_SECONDS = 60.0
"""How often at most the last use of a token is written."""


class TokenRepository(Repository):
    """API tokens. Names are unique among the tokens that are not revoked."""

    def add(self, stored: StoredToken) -> ApiToken:
        """Store a token; ``ConflictError`` when one of its name is there and not revoked."""
        token = stored.token
        with self._scope.write() as session:
            taken = f"there is a token named {token.name} already; revoke it, or choose another name"
            same = select(ApiTokenRow.token_id).where(ApiTokenRow.name == token.name, ApiTokenRow.revoked_at.is_(None))
            if session.scalar(same) is not None:
                raise ConflictError(taken)
            scopes = None if token.scopes is None else [*token.scopes]
            values = dict(token) | {"role": token.role.value, "scopes": scopes}
            insert_new(session, ApiTokenRow(**values, secret_sha256=stored.secret_sha256), taken)
        return token

    def find(self, token_id: str) -> StoredToken | None:
        """Token and its secret's hash, to check a caller; None when there is none."""
        with self._scope.read() as session:
            row = session.get(ApiTokenRow, token_id)
            return None if row is None else StoredToken(token=ApiToken.of_record(row), secret_sha256=row.secret_sha256)

    def list_tokens(self) -> list[ApiToken]:
        """All tokens, also expired and revoked ones, newest first."""
        wanted = select(ApiTokenRow).order_by(ApiTokenRow.created_at.desc(), ApiTokenRow.token_id)
        with self._scope.read() as session:
            return [ApiToken.of_record(row) for row in session.scalars(wanted)]

    def revoke(self, token_id: str) -> ApiToken:
        """Revoke a token for good; once more changes nothing; raise ``NotFoundError``."""
        with self._scope.write() as session:
            row = stored_row(session, ApiTokenRow, token_id, f"no token {token_id}", lock=True)
            if row.revoked_at is None:
                row.revoked_at = utc_now(session)
            return ApiToken.of_record(row)

    def touch(self, token_id: str) -> bool:
        """Note that a token was used; written at most once a minute, so that reading the API seldom writes."""
        with self._scope.read() as session:
            row = session.get(ApiTokenRow, token_id)
            due = utc_now(session) - timedelta(seconds=TOUCH_SECONDS)
            if row is None or (row.last_used_at is not None and row.last_used_at >= due):
                return False
        with self._scope.write() as session:
            stale = or_(ApiTokenRow.last_used_at.is_(None), ApiTokenRow.last_used_at < due)
            touched = session.execute(
                update(ApiTokenRow)
                .where(ApiTokenRow.token_id == token_id, stale)
                .values(last_used_at=utc_now(session))
            )
            return rows_touched(touched) == 1
