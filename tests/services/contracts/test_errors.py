"""An error's code: of its class, or its own; never given to others of the class."""

from __future__ import annotations

import pytest

from services.contracts.errors import (
    BallastError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    UnavailableError,
)


@pytest.mark.parametrize(("kind", "code"), [
    (BallastError, "error"), (InvalidInputError, "invalid_input"), (NotFoundError, "not_found"),
    (ConflictError, "conflict"), (UnavailableError, "unavailable"),
])
def test_a_code_of_its_own_is_that_of_no_other(kind: type[BallastError], code: str) -> None:
    """Clients go by these words."""
    own = kind("said", code="of_its_own")
    assert (own.code, str(own)) == ("of_its_own", "said")
    assert kind("said").code == kind.code == code
