"""What MLflow raises is one line of ours, of the right kind, without statements and their parameters."""

from __future__ import annotations

import traceback

import pytest
from mlflow.exceptions import MlflowException
from mlflow.protos import databricks_pb2 as codes
from sqlalchemy.exc import ArgumentError, OperationalError

from services.contracts.errors import BallastError, ConflictError, InvalidInputError, NotFoundError, UnavailableError
from services.registry.error_translation import mlflow_errors
from services.registry.mlflow_connection import again_if_refused, if_there, page_by_page, unless_there

KINDS = [
    (codes.RESOURCE_DOES_NOT_EXIST, NotFoundError), (codes.RESOURCE_ALREADY_EXISTS, ConflictError),
    (codes.INVALID_STATE, ConflictError), (codes.INVALID_PARAMETER_VALUE, InvalidInputError),
    (codes.INTERNAL_ERROR, UnavailableError), (codes.TEMPORARILY_UNAVAILABLE, UnavailableError),
]


@pytest.mark.parametrize(("code", "kind"), KINDS)
def test_a_failure_has_the_kind_that_it_is(code: int, kind: type[BallastError]) -> None:
    with pytest.raises(kind) as said, mlflow_errors("read model pump"):
        raise MlflowException("no\n[SQL: SELECT secret]", error_code=code)
    assert type(said.value) is kind and str(said.value) == "registry could not read model pump: no"


def test_a_database_that_fails_does_not_tell_what_it_was_asked() -> None:
    with pytest.raises(UnavailableError) as said, mlflow_errors("open"):
        raise OperationalError("SELECT :word", {"word": "hunter2"}, Exception("the disk is gone\nhint"))
    assert str(said.value) == "registry could not open: the disk is gone"
    with pytest.raises(UnavailableError, match="registry could not open: No such file"), mlflow_errors("open"):
        open("/nowhere/at/all", encoding="ascii")
    with pytest.raises(NotFoundError, match="^ours$"), mlflow_errors("open"):
        raise NotFoundError("ours")


def test_a_server_that_is_away_is_named_without_the_password_in_its_address() -> None:
    asked = "API request to https://ada:ses@me%2F@mlflow.example:5000/api/2.0 failed (a@b), see http://x/y@z"
    with pytest.raises(UnavailableError) as said, mlflow_errors("open"):
        raise MlflowException(asked, error_code=codes.TEMPORARILY_UNAVAILABLE)
    told = "API request to https://mlflow.example:5000/api/2.0 failed (a@b), see http://x/y@z"
    assert str(said.value) == f"registry could not open: {told}"
    assert "ses@me" not in "".join(traceback.format_exception(said.value)), "nor in a log"
    with pytest.raises(UnavailableError) as plain, mlflow_errors("open"):
        raise MlflowException("http://mlflow.example is away", error_code=codes.TEMPORARILY_UNAVAILABLE)
    assert isinstance(plain.value.__cause__, MlflowException)
    with pytest.raises(UnavailableError, match="^registry could not open: no driver at postgresql://db.example/mlflow$"):
        with mlflow_errors("open"):
            raise ArgumentError("no driver at postgresql://ada:sesame@db.example/mlflow")


def test_only_the_expected_answer_is_passed_over() -> None:
    def refuse(code: int) -> object:
        raise MlflowException("no", error_code=code)

    unless_there(lambda: refuse(codes.RESOURCE_ALREADY_EXISTS))
    assert if_there(lambda: refuse(codes.RESOURCE_DOES_NOT_EXIST)) is None is if_there(lambda: refuse(codes.NOT_FOUND))
    assert if_there(lambda: 7) == 7
    for ask in (unless_there, if_there, again_if_refused):
        with pytest.raises(MlflowException):
            ask(lambda: refuse(codes.INTERNAL_ERROR))


@pytest.mark.parametrize(("refusals", "calls"), [(0, 1), (1, 2), (2, 2)])
def test_what_two_wrote_at_once_is_written_again_and_once(refusals: int, calls: int) -> None:
    made: list[int] = []

    def write() -> None:
        made.append(1)
        if len(made) <= refusals:
            raise MlflowException("twice", error_code=codes.BAD_REQUEST)

    if refusals < 2:
        again_if_refused(write)
    else:
        with pytest.raises(MlflowException, match="twice"):
            again_if_refused(write)
    assert len(made) == calls


def test_what_failed_otherwise_is_not_written_again() -> None:
    made: list[int] = []

    def write() -> None:
        made.append(1)
        raise MlflowException("gone", error_code=codes.INTERNAL_ERROR)

    with pytest.raises(MlflowException, match="gone"):
        again_if_refused(write)
    assert made == [1]


def test_a_search_goes_on_to_its_last_page() -> None:
    held = {None: ([1, 2], "a"), "a": ([], "b"), "b": ([3], "")}

    class Page(list[int]):
        """A page as MLflow gives it: a list with the token of the next."""

        token = ""

    def search(*, filter_string: str, page_token: str | None) -> Page:
        found, token = held[page_token]
        page = Page(found)
        page.token = token
        assert filter_string == "name = 'x'"
        return page

    assert list(page_by_page(search, "name = 'x'")) == [1, 2, 3]
