"""The report of a model version, from its run and the run's rounds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from models.evaluation.scores import class_recalls
from services.contracts.history.run import RoundPoint, RoundRecord, Run, SiteAnswer
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.report import CertificateReport, GateResult, MissedRound, ModelReport, SiteReport
from services.contracts.versions.version_facts import Confusion, SiteScore
from services.reporting.sensor_curves import sensor_curves


def model_report(
    version: ModelVersion, run: Run, rounds: Sequence[RoundRecord], gates: Sequence[GateResult] = ()
) -> ModelReport:
    """Report of a version: certificates, gap by round, each site's part, what was missed and why, the gates.

    ``gates`` are the registry's findings (``check_gates(run.plan.gates, version)``). Pure: the same input gives the
    same report. Before registration the version has no number, and neither has its report.
    """
    ordered = sorted(rounds, key=lambda record: record.round)
    scores = {site.site_id: site for site in version.sites}
    terms, members = {site.site_id: site for site in run.sites}, {site.site_id for site in run.members}
    answers = _answers(ordered)
    sites = []
    for site_id in sorted({*scores, *terms, *answers}):
        term = terms.get(site_id)
        score = scores.get(site_id) or SiteScore(
            site_id=site_id, weight=term.weight if term and site_id in members else 0.0,
            radius=term.radius if term else 0.0, fresh=False,
        )
        sites.append(_site(score, term.n_samples if term else None, answers.get(site_id, [])))
    known = [site.f1 for site in version.sites if site.f1 is not None and not math.isnan(site.f1)]
    errors = [site.mae for site in version.sites if site.mae is not None]
    target = version.asset_type.target if version.task == "regression" else None
    together = version.confusion or _added([site.confusion for site in version.sites if site.confusion is not None])
    return ModelReport.of_record(
        version,
        asset_type=version.asset_type.name,
        fingerprint=version.asset_type.fingerprint,
        certificate=CertificateReport.of_record(version, gap=version.certified_gap),
        wanted_gap=run.plan.gap,
        classes=() if target else version.asset_type.class_names,
        confusion=together,
        recall=_recalls(together),
        worst_site_f1=min(known, default=None),
        worst_site_mae=max(errors, default=None),
        target=target.name if target else None,
        unit=target.unit if target else None,
        sites=tuple(sites),
        rounds=tuple(RoundPoint.of_record(record) for record in ordered),
        missed=tuple(
            MissedRound.of_record(answer, round=record.round)
            for record in ordered
            for answer in record.answers
            if answer.status not in ("accepted", "open")
        ),
        absentees=tuple(MissedRound.of_record(answer, round=0) for answer in run.absentees),
        gates=tuple(gates),
        curves=sensor_curves(version),
        promotable=all(gate.holds for gate in gates),
        seconds=math.fsum(record.seconds for record in ordered),
    )


def _answers(rounds: Sequence[RoundRecord]) -> dict[str, list[tuple[int, SiteAnswer]]]:
    found: dict[str, list[tuple[int, SiteAnswer]]] = {}
    for record in rounds:
        for answer in record.answers:
            found.setdefault(answer.site_id, []).append((record.round, answer))
    return found


def _site(score: SiteScore, n_samples: int | None, answers: Sequence[tuple[int, SiteAnswer]]) -> SiteReport:
    counts = Counter(answer.status for _, answer in answers)
    return SiteReport(
        **dict(score),
        n_samples=n_samples,
        recall=_recalls(score.confusion),
        accepted=counts["accepted"],
        absent=counts["absent"],
        late=counts["late"],
        open=counts["open"],
        refused=counts["refused_by_site"],
        rejected=counts["rejected"],
        last_accepted_round=max((at for at, answer in answers if answer.status == "accepted"), default=None),
        bytes_to_site=sum(answer.bytes_out for _, answer in answers),
        bytes_from_site=sum(answer.bytes_in for _, answer in answers),
        seconds=math.fsum(answer.seconds for _, answer in answers),
    )


def _added(counts: Sequence[Confusion]) -> Confusion | None:
    """Counts of all sites together; None where none has any."""
    return tuple(map(tuple, np.sum(counts, axis=0).tolist())) if counts else None


def _recalls(counts: Confusion | None) -> tuple[float | None, ...] | None:
    if counts is None:
        return None
    recalls = class_recalls(np.array(counts, dtype=np.float64)).tolist()
    return tuple(None if math.isnan(each) else each for each in recalls)


