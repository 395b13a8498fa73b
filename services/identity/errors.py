"""What goes wrong when a caller says who he is, or asks for more than he may."""

from services.contracts.errors import BallastError


class UnauthenticatedError(BallastError):
    """The caller has not shown a token that holds."""

    code = "unauthenticated"


class ForbiddenError(BallastError):
    """The caller is known, but his role does not allow this."""

    code = "forbidden"
