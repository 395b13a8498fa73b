"""A client of the REST API in Python, with the contracts as its types; ``ballast.client`` in an installed wheel."""

from api.client.client import Client
from api.client.errors import (
    ApiError,
    ChangedMeanwhileError,
    ChangeStoredError,
    CommitUnknownError,
    EventsLostError,
    InvalidRequestError,
    NotAllowedError,
    NotThereError,
    ServerError,
    SignedOutError,
    UnreachableError,
)

__all__ = [
    "ApiError", "ChangeStoredError", "ChangedMeanwhileError", "Client", "CommitUnknownError", "EventsLostError",
    "InvalidRequestError", "NotAllowedError", "NotThereError", "ServerError", "SignedOutError", "UnreachableError",
]
