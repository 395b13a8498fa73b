"""The REST API as methods: what goes in and out are the contracts of the services."""

from __future__ import annotations

import http.client
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from pydantic import BaseModel, ValidationError

from api.client.errors import EventsLostError, InvalidRequestError, NotThereError, ServerError, UnreachableError
from api.client.transport import LONGEST_PAUSE, Token, Transport
from api.models.schemas import ChampionChange, ModelDetail, VersionDetail
from services.contracts.access.enrolment_records import CodeState, EnrolmentRecord
from services.contracts.evaluation.diagnosis import DiagnoseResponse
from services.contracts.evaluation.estimate import EstimateResponse
from services.contracts.history.events import LOST, Event, EventKind
from services.contracts.history.records import PlanRecord, PlanVersion
from services.contracts.history.run import OrderedRun, RoundRecord, Run
from services.contracts.history.site import Site
from services.contracts.versions.version_facts import ModelSummary
from services.process.command_line import product_version

AnyModel = TypeVar("AnyModel", bound=BaseModel)
QUIET_SECONDS: Final = 60.0
"""A stream says every 15 s that it is there; after so long without a word it is cut."""
_NEXT: Final = re.compile(r'<([^>]*)>;\s*rel="next"')


class Client:
    """Asks a server of Ballast.

    Parameters
    ----------
    url
        Address of the server, ``https://`` (``http://`` on the loopback alone).
    token
        API token, or access token of the issuer; or a function that gives one, asked before each request.
    ca_file
        PEM of the server's authority (``tls/ca.pem`` of its home folder); None: the system's authorities.
    attempts
        How often a request is asked at most while there is no answer, or a 502, 503 or 504.

    Every method raises a subclass of :class:`~api.client.errors.ApiError` with what the server said.
    """

    def __init__(
        self, url: str, token: Token, *, ca_file: Path | None = None, timeout: float = 30.0, attempts: int = 3,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._http = Transport(url, token, ca_file=ca_file, timeout=timeout, attempts=attempts, sleep=sleep)
        self._sleep = sleep

    def diagnose(self, model: str, *samples: Mapping[str, float], **more: Any) -> DiagnoseResponse:
        """Diagnose measurements by the champion; ``more``: ``alias``, ``units``, ``coverage``."""
        body = {"samples": samples, **more}
        return self._one(DiagnoseResponse, "POST", f"/v1/models/{_word(model)}/diagnose", body=body)

    def estimate(self, model: str, *samples: Mapping[str, float], **more: Any) -> EstimateResponse:
        """Estimate a model's target; ``more``: ``alias``, ``units``, ``confidence``, ``coverage``."""
        body = {"samples": samples, **more}
        return self._one(EstimateResponse, "POST", f"/v1/models/{_word(model)}/estimate", body=body)

    def models(
        self, *, asset_type: str | None = None, prefix: str | None = None, champion: bool | None = None
    ) -> Iterator[ModelSummary]:
        """Models by name; ``champion``: those that have one, or have none."""
        wanted = {"asset_type": asset_type, "prefix": prefix, "champion": champion}
        return self._list(ModelSummary, "/v1/models", "models", **wanted)

    def model(self, name: str) -> ModelDetail:
        """One model with its versions, the newest first."""
        return self._one(ModelDetail, "GET", f"/v1/models/{_word(name)}")

    def version(self, name: str, version: str = "champion") -> VersionDetail:
        """One version, by its number or alias."""
        return self._one(VersionDetail, "GET", f"/v1/models/{_word(name)}/versions/{_word(version)}")

    def promote(
        self, name: str, reason: str, *, version: str = "challenger", ignore_gates: bool = False, key: str = ""
    ) -> ChampionChange:
        """Make a version champion."""
        body = {"version": version, "reason": reason, "ignore_gates": ignore_gates}
        path = f"/v1/admin/models/{_word(name)}/promote"
        return self._one(ChampionChange, "POST", path, body=body, change=key or True)

    def runs(self, *, plan: str | None = None, status: str | None = None) -> Iterator[Run]:
        """Runs, the newest first."""
        return self._list(Run, "/v1/runs", "runs", plan=plan, status=status)

    def run(self, run_id: str) -> Run:
        """One run."""
        return self._one(Run, "GET", f"/v1/runs/{_word(run_id)}")

    def rounds(self, run_id: str, *, after: int = 0) -> Sequence[RoundRecord]:
        """Committed rounds of a run later than ``after``, a thousand at most."""
        found = self._http.call("GET", f"/v1/runs/{_word(run_id)}/rounds", query={"after": after}).content
        return [_read(RoundRecord, each) for each in _member(found, "rounds")]

    def cancel(self, run_id: str, reason: str = "", *, key: str = "") -> Run:
        """Ask a run to stop after its present round."""
        path = f"/v1/admin/runs/{_word(run_id)}/cancel"
        return self._one(Run, "POST", path, body={"reason": reason}, change=key or True)

    def plans(
        self, *, asset_type: str | None = None, archived: bool = False, paused: bool | None = None
    ) -> Iterator[PlanRecord]:
        """Plans by name."""
        wanted = {"asset_type": asset_type, "archived": archived or None, "paused": paused}
        return self._list(PlanRecord, "/v1/admin/plans", "plans", **wanted)

    def plan_versions(
        self, name: str, *, actor: str | None = None, since: datetime | None = None, until: datetime | None = None
    ) -> Iterator[PlanVersion]:
        """Versions of a plan, the first one first; moments have their zone."""
        wanted = {"actor": actor, "since": since and since.isoformat(), "until": until and until.isoformat()}
        return self._list(PlanVersion, f"/v1/admin/plans/{_word(name)}/versions", "versions", **wanted)

    def plan(self, name: str) -> PlanRecord:
        """One plan."""
        return self._one(PlanRecord, "GET", f"/v1/admin/plans/{_word(name)}")

    def trigger(self, plan: str, reason: str = "", *, key: str = "") -> OrderedRun:
        """Ask for a run of a plan. Under the same ``key`` of yours it is made once a day, whoever fails in between.

        ``notices``: what of the plan to look at.
        """
        path = f"/v1/admin/plans/{_word(plan)}/trigger"
        return self._one(OrderedRun, "POST", path, body={"reason": reason}, change=key or True)

    def tune(self, plan: str, reason: str = "", *, key: str = "") -> Run:
        """Ask for a tuning of a plan's terms and nothing else; ``run(run_id).plan.tuned`` is what it chose."""
        path = f"/v1/admin/plans/{_word(plan)}/tune"
        return self._one(Run, "POST", path, body={"reason": reason}, change=key or True)

    def sites(self, *, status: str | None = None, asset_type: str | None = None) -> Iterator[Site]:
        """Plants by id."""
        return self._list(Site, "/v1/admin/sites", "sites", status=status, asset_type=asset_type)

    def enrolment_codes(
        self, *, site: str | None = None, state: CodeState | None = None
    ) -> Iterator[EnrolmentRecord]:
        """Enrolment codes without their secrets, the newest first."""
        return self._list(EnrolmentRecord, "/v1/admin/enrolment-codes", "codes", site=site, state=state)

    def events(
        self, *kinds: EventKind, plan: str | None = None, after: int | None = None
    ) -> Iterator[Event]:
        """Events as they happen, for ever; a stream that is cut goes on where it was.

        ``after`` is the number of the last event that you know, 0 for all that are kept, None for those from now on.
        :class:`EventsLostError` where some in between are gone; other errors where the server lets you in no more.
        """
        last, failures = after, 0
        query = urlencode([("kind", kind) for kind in kinds] + ([("plan", plan)] if plan else []))
        while True:
            try:
                for number, event in self._stream(f"/v1/events{'?' if query else ''}{query}", last):
                    last, failures = number, 0
                    if event is not None:
                        yield event
            except UnreachableError:
                failures += 1
            self._sleep(min(LONGEST_PAUSE, 0.5 * 2.0**min(failures, 6)))

    def _stream(self, path: str, last: int | None) -> Iterator[tuple[int, Event | None]]:
        """Events of one connection with their numbers, until it ends; None where it is told how far the stream is."""
        headers = {"Accept": "text/event-stream", **({} if last is None else {"Last-Event-ID": str(last)})}
        told: dict[str, str] = {}
        with self._http.open(path, headers, QUIET_SECONDS) as stream:
            if stream.headers.get_content_type() != "text/event-stream":
                raise ServerError("the answer is no stream of events; is this address Ballast's?", status=200)
            while True:
                try:
                    line = stream.readline().decode("utf-8", "replace")
                except (OSError, http.client.HTTPException):
                    return
                if not line:
                    return
                name, _, value = line.rstrip("\r\n").partition(": ")
                if line.startswith(":"):  # a comment: the server is there
                    continue
                if name:
                    told[name] = value
                elif told:
                    event, told = told, {}
                    if "id" in event:  # a browser keeps it, too, where no event comes with it
                        yield _numbered(event)

    def _one(self, kind: type[AnyModel], method: str, path: str, **more: Any) -> AnyModel:
        return _read(kind, self._http.call(method, path, **more).content)

    def _list(self, kind: type[AnyModel], path: str, member: str, **query: Any) -> Iterator[AnyModel]:
        """Rows of all pages, each page asked for when its first row is wanted."""
        while True:
            answer = self._http.call("GET", path, query=query)
            for each in _member(answer.content, member):
                yield _read(kind, each)
            headers = {name.lower(): value for name, value in answer.headers.items()}
            more = _NEXT.search(headers.get("link", ""))
            if more is None:
                return
            query = _page_after(query, more[1])


def _page_after(query: Mapping[str, Any], address: str) -> dict[str, Any]:
    """What asks for the next page; :class:`ServerError` for no address, or one of the same page, without end."""
    try:
        following = dict(parse_qsl(urlsplit(address).query))
    except ValueError:
        following = {}
    if not following or following == query:
        raise ServerError("the answer's next page is none; is this address Ballast's?", status=200)
    return following


def _numbered(told: Mapping[str, str]) -> tuple[int, Event | None]:
    """Event of a stream with its number; None where it only tells how far the stream is.

    :class:`EventsLostError` where some before it are gone, :class:`ServerError` where it cannot be read.
    """
    try:
        number, content = int(told["id"]), json.loads(told.get("data", "null"))
    except (ValueError, RecursionError):
        said = "the stream has an event that cannot be read; is this address Ballast's?"
        raise ServerError(said, status=200) from None
    if told.get("event") == LOST:
        raise EventsLostError(number)
    return number, _read(Event, content) if "data" in told else None


def _word(text: str) -> str:
    """Name as one part of a path; ``InvalidRequestError`` for one that would be another address.

    ``NotThereError`` for one with a slash: nothing has such a name, and a server takes ``%2F`` for a slash.
    """
    if not text.strip("."):
        raise InvalidRequestError(f"{text!r} is no name")
    if "/" in text:
        raise NotThereError(f"nothing is named {text!r}: a name has no slash", code="not_found")
    return quote(text, safe="")


def _member(content: Any, name: str) -> list[Any]:
    found = content.get(name) if isinstance(content, dict) else None
    if not isinstance(found, list):
        raise ServerError(f"the answer has no {name}; is this address Ballast's?", status=200)
    return found


def _read(kind: type[AnyModel], content: Any) -> AnyModel:
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ServerError(
            f"the answer does not fit {kind.__name__} of this client, version {product_version()}: "
            f"{where}: {first['msg']}; is the server's version another?", status=200,
        ) from None
