"""Forms: from this origin, with the session's token, or not at all.

Both are asked, and ``SameSite=Strict`` keeps the cookie from other sites' requests besides: each alone would do in a
browser of today.
"""

from __future__ import annotations

import hmac
from typing import Annotated, Final
from urllib.parse import SplitResult, parse_qsl, urlsplit

from fastapi import Depends, Request

from api.web.authenticator import Caller
from api.web.sessions import form_token
from services.contracts.errors import InvalidInputError
from services.identity.errors import ForbiddenError, UnauthenticatedError

FIELD: Final = "form_token"
MOST_FIELDS: Final = 500  # the longest form, of a diagnosis, has one for each sensor
SHORTEST_REASON, LONGEST_REASON = 3, 500
MEDIA_TYPE: Final = "application/x-www-form-urlencoded"
Fields = dict[str, str]


class PostedForm:
    """Dependency of every route that changes something: its form's fields. ``ForbiddenError`` for a forged request.

    ``signed_in`` False: for the form that opens a session, which has no token yet; its origin is checked all the same.
    """

    def __init__(self, *, signed_in: bool = True) -> None:
        self.signed_in = signed_in

    async def __call__(self, request: Request) -> Fields:
        """Fields of the form, after the checks."""
        caller: Caller | None = getattr(request.state, "caller", None)
        if self.signed_in and (caller is None or not caller.session):
            raise UnauthenticatedError("sign in first")
        check_origin(request)
        fields = await _fields(request)
        if self.signed_in and caller is not None:
            given = fields.pop(FIELD, "")
            if not hmac.compare_digest(given.encode("utf-8", "replace"), form_token(caller.session).encode()):
                raise ForbiddenError("this form is not of your session; open the page again", code="forged_request")
        return fields


def check_origin(request: Request) -> None:
    """Raise ``ForbiddenError`` unless a browser says that the request comes from a page of this host."""
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    fits = origin is not None and said_address(origin).netloc == request.headers.get("host")
    if not fits and origin not in (None, "null") and site == "same-origin":
        # Only a browser sets Sec-Fetch-Site: the page is of the host that the browser asked, under another name here.
        raise ForbiddenError(
            "the browser asked another host than the one that this request names (Host): a proxy on the way must hand "
            "the Host of a request on as it came", code="forged_request",
        )
    if not fits or site not in (None, "same-origin"):
        raise ForbiddenError("this form was not sent from a page of this console", code="forged_request")


def said_address(text: str) -> SplitResult:
    """Parts of the address that a header names; empty ones where it is none, for anybody may write a header."""
    try:
        return urlsplit(text)
    except ValueError:
        return urlsplit("")


async def _fields(request: Request) -> Fields:
    if request.headers.get("content-type", "").split(";")[0].strip() != MEDIA_TYPE:
        raise InvalidInputError(f"a form is sent as {MEDIA_TYPE}", code="unsupported_media_type")
    try:
        pairs = parse_qsl(
            (await request.body()).decode("utf-8"), keep_blank_values=True, max_num_fields=MOST_FIELDS
        )
    except (ValueError, UnicodeDecodeError):
        raise InvalidInputError(f"the form cannot be read: UTF-8 text with {MOST_FIELDS} fields at most") from None
    if any("\x00" in text for pair in pairs for text in pair):
        raise InvalidInputError("the form cannot contain U+0000")
    return dict(pairs)


def reason_of(fields: Fields, *, needed: bool = False) -> str:
    """Why something is done; ``InvalidInputError`` where it is needed and missing, or too long."""
    reason = fields.get("reason", "").strip()
    if needed and len(reason) < SHORTEST_REASON:
        raise InvalidInputError(f"say why, in {SHORTEST_REASON} characters or more; it goes into the audit trail")
    if len(reason) > LONGEST_REASON:
        raise InvalidInputError(f"the reason is longer than {LONGEST_REASON} characters")
    return reason


Posted = Annotated[Fields, Depends(PostedForm())]
PostedBySomebody = Annotated[Fields, Depends(PostedForm(signed_in=False))]
