"""The one base of every error that the service raises on purpose."""


class BallastError(Exception):
    """A failure with a stable code and one clear line that says what was wrong and what would be right."""

    code = "error"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code


class InvalidInputError(BallastError):
    """Something from outside does not fit; nothing was changed."""

    code = "invalid_input"


class NotFoundError(BallastError):
    """What was named does not exist."""

    code = "not_found"


class ConflictError(BallastError):
    """What was asked contradicts what is there."""

    code = "conflict"


class UnavailableError(BallastError):
    """A server or a site that is needed is not there."""

    code = "unavailable"
