"""Metrics that are read at the moment when they are asked for: the store's rows, and the counts of answers.

Sites have a pseudonym that is the metrics' own, for who watches a service need not know which plants it has.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from api.backend.flows_process import HANGS, flows_at_work, flows_idle
from api.backend.wiring import Backend
from api.system.doctor import last_backup
from services.contracts.errors import BallastError
from services.process.command_line import product_version

PSEUDONYMS_OF = "metrics"
"""What the sites' pseudonyms are made with, in the place of a model's name."""
STATES = ("connected", "silent", "never", "suspended")


class StoreMetrics(Collector):
    """Reads the store once a scrape: some ten statements, none of which grows with the history of rounds."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def describe(self) -> list[Metric]:
        """Nothing beforehand: the names are in README, and the store may be away when the process starts."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The metrics of now; where the store is away, that alone."""
        yield _gauge("ballast_build", "Version that runs, as a label", {(product_version(),): 1.0}, "version")
        yield from self._of_answers()
        try:
            found = list(self._of_store(datetime.now(UTC)))
        except BallastError:
            yield _gauge("ballast_store_up", "Whether the store answers", {(): 0.0})
            return
        yield _gauge("ballast_store_up", "Whether the store answers", {(): 1.0})
        yield from found

    def _of_store(self, now: datetime) -> Iterator[Metric]:
        store, settings = self._backend.store, self._backend.settings
        totals = store.overview.run_totals()
        yield _gauge("ballast_runs", "Runs by status", {(status,): runs for status, (runs, _) in totals.items()},
                     "status")
        yield _gauge("ballast_rounds", "Committed rounds of all runs", {(): sum(each for _, each in totals.values())})
        unfinished = store.runs.unfinished_runs()
        yield _gauge("ballast_run_rounds", "Committed rounds of the unfinished run of a plan",
                     {(run.plan.name,): run.rounds for run in unfinished}, "plan")
        yield _gauge("ballast_run_gap", "Certified gap of the unfinished run of a plan",
                     {(run.plan.name,): run.gap for run in unfinished if run.gap is not None}, "plan")
        yield _gauge("ballast_run_idle_seconds", "Seconds since the unfinished run of a plan came further",
                     {(run.plan.name,): (now - run.updated_at).total_seconds() for run in unfinished}, "plan")
        yield from self._of_sites(now)
        yield _gauge("ballast_champion_version", "Number of a model's champion", {
            (model,): float(change.version) for (model, alias), change in store.overview.aliases().items()
            if alias == "champion" and change.version is not None and change.version.isdecimal()
        }, "model")
        hooks = store.webhooks.list_webhooks()
        yield _gauge("ballast_webhooks", "Webhooks by state", {
            ("ok",): sum(not hook.failures and hook.disabled_at is None for hook in hooks),
            ("failing",): sum(bool(hook.failures) and hook.disabled_at is None for hook in hooks),
            ("disabled",): sum(hook.disabled_at is not None for hook in hooks),
        }, "state")
        newest = store.audit.list_events(limit=1)
        yield _gauge("ballast_audit_entries", "Entries of the audit trail", {(): newest[0].number if newest else 0})
        made = last_backup(self._backend)
        yield _gauge("ballast_last_backup_timestamp_seconds", "When the last backup was made; 0: never",
                     {(): 0.0 if made is None else made.timestamp()})
        alive = flows_at_work(settings)
        if alive is not None:
            at_work = alive and flows_idle(settings) <= HANGS
            yield _gauge("ballast_flows_up", "Whether a flows process is at work on this host", {(): float(at_work)})
        yield _gauge("ballast_disk_free_bytes", "Room on the disk of the home folder",
                     {(): shutil.disk_usage(settings.home).free})

    def _of_answers(self) -> Iterator[Metric]:
        tally = self._backend.predictors.tally
        answers = CounterMetricFamily(
            "ballast_diagnoses", "Measurements that were diagnosed or estimated, by size of the set of classes",
            labels=("model", "version", "classes"),
        )
        for (model, version, size), count in tally.answers().items():
            answers.add_metric((model, version, "" if size is None else str(size)), float(count))
        abstained = CounterMetricFamily(
            "ballast_abstentions", "Of these, answers that are not to be trusted", labels=("model", "version")
        )
        for (model, version), count in tally.abstentions().items():
            abstained.add_metric((model, version), float(count))
        yield from (answers, abstained)

    def _of_sites(self, now: datetime) -> Iterator[Metric]:
        sites = self._backend.store.sites.list_sites()
        states: dict[tuple[str, ...], float] = {(state,): 0.0 for state in STATES}
        silence: dict[tuple[str, ...], float] = {}
        for site in sites:
            if site.status == "suspended":
                states[("suspended",)] += 1
            elif site.status == "active":
                states[(site.presence(now).split()[0],)] += 1
                name = self._backend.pseudonyms.name(PSEUDONYMS_OF, site.site_id)
                silence[(name,)] = math.inf if site.last_seen is None else (now - site.last_seen).total_seconds()
        yield _gauge("ballast_sites", "Enrolled sites by state", states, "state")
        yield _gauge("ballast_site_silence_seconds", "Seconds since an active site was last connected; +Inf: never",
                     silence, "site")


def _gauge(name: str, about: str, values: dict[tuple[str, ...], float], *labels: str) -> Metric:
    family = GaugeMetricFamily(name, about, labels=labels)
    for key, value in values.items():
        family.add_metric(key, float(value))
    return family
