"""The connection to MLflow, and how its writes and searches are made."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, TypeVar

from services.registry.error_translation import mlflow_errors
from services.registry.mlflow_environment import silence_mlflow
from services.registry.store_lock import opening

Answer = TypeVar("Answer")


class MlflowConnection:
    """One MLflow, by its address. What it raises is MLflow's own, unless said otherwise."""

    def __init__(self, tracking_uri: str) -> None:
        self._uri = tracking_uri
        self._connecting = threading.Lock()

    @property
    def client(self) -> Any:
        """The MLflow client; the first call imports MLflow."""
        with self._connecting:
            return self._connected

    @cached_property
    def _connected(self) -> Any:
        silence_mlflow()
        from mlflow import MlflowClient

        with mlflow_errors("open its store"), opening(self._uri):
            client = MlflowClient(tracking_uri=self._uri, registry_uri=self._uri)
            client.search_registered_models(max_results=1)  # MLflow makes its tables at the first question
            return client


def unless_there(create: Callable[[], object]) -> None:
    """Create something; nothing happens where it is there."""
    from mlflow.exceptions import MlflowException

    try:
        create()
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise


def if_there(ask: Callable[[], Answer]) -> Answer | None:
    """What MLflow answers about something; None where that is not there, or not any more."""
    from mlflow.exceptions import MlflowException

    try:
        return ask()
    except MlflowException as error:
        if error.error_code not in {"RESOURCE_DOES_NOT_EXIST", "NOT_FOUND"}:
            raise
        return None


def again_if_refused(write: Callable[[], object]) -> None:
    """MLflow looks for a row, then inserts it: of two that do so at once one is refused, and finds it the next time."""
    from mlflow.exceptions import MlflowException

    try:
        write()
    except MlflowException as error:
        if error.error_code != "BAD_REQUEST":
            raise
        write()


def page_by_page(search: Callable[..., Any], wanted: str) -> Iterator[Any]:
    """What a search finds, in its order; a page is asked for when the one before it is used up."""
    token = None
    while True:
        page = search(filter_string=wanted, page_token=token)
        yield from page
        token = page.token
        if not token:
            return
