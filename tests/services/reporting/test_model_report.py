from __future__ import annotations

import json
import math

from services.contracts.documents import to_plain
from services.contracts.history.run import RoundRecord, Run
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.report import GateResult, ModelReport
from services.reporting.model_report import model_report


def test_sites_and_their_part_in_the_rounds(version: ModelVersion, run: Run, rounds: tuple[RoundRecord, ...]) -> None:
    first, second = model_report(version, run, rounds).sites
    assert (first.site_id, first.n_samples, first.accepted, first.last_accepted_round) == ("plant-a", 300, 3, 3)
    assert (first.bytes_from_site, first.bytes_to_site, first.seconds) == (2400, 1500, 0.75)
    assert (second.accepted, second.absent, second.refused, second.late, second.rejected) == (1, 1, 1, 0, 0)
    assert (second.bytes_from_site, second.bytes_to_site) == (890, 1500)
    assert (second.last_accepted_round, second.worst_case_risk, second.fresh) == (1, 0.4, False)


def test_certificate_rounds_and_what_was_missed(
    version: ModelVersion, run: Run, rounds: tuple[RoundRecord, ...]
) -> None:
    report = model_report(version, run, rounds)
    assert [point.round for point in report.rounds] == [1, 2, 3]
    assert report.seconds == 4.5 and report.wanted_gap == run.plan.gap
    assert (report.certificate.worst_case_risk, report.certificate.fresh_weight) == (0.25, 0.75)
    assert (report.f1, report.worst_site_f1) == (0.9, 0.8)
    assert [(item.round, item.site_id, item.code) for item in report.missed] == [
        (2, "plant-b", "absent"),
        (3, "plant-b", "no_data"),
    ]
    assert [(item.round, item.site_id, item.code) for item in report.absentees] == [(0, "plant-c", "too_few_samples")]


def test_gates_decide_what_is_promotable(version: ModelVersion, run: Run) -> None:
    good = GateResult(name="max_gap", wanted=1e-3, found=0.0, holds=True)
    bad = GateResult(name="min_f1", wanted=0.95, found=0.9, holds=False, reason="too low")
    assert model_report(version, run, ()).promotable
    assert model_report(version, run, (), [good]).promotable
    report = model_report(version, run, (), [good, bad])
    assert not report.promotable and report.gates == (good, bad)


def test_scores_that_are_missing_or_nan_do_not_make_the_worst_site(version: ModelVersion, run: Run) -> None:
    sites = (
        version.sites[0].model_copy(update={"f1": math.nan}),
        version.sites[1].model_copy(update={"f1": None}),
    )
    assert model_report(version.model_copy(update={"sites": sites}), run, ()).worst_site_f1 is None
    kept = (version.sites[0], version.sites[1].model_copy(update={"f1": math.nan}))
    assert model_report(version.model_copy(update={"sites": kept}), run, ()).worst_site_f1 == 0.95


def test_a_report_is_json_and_reads_back(version: ModelVersion, run: Run, rounds: tuple[RoundRecord, ...]) -> None:
    report = model_report(version, run, rounds)
    text = json.dumps(to_plain(report), allow_nan=False)
    assert ModelReport.model_validate(json.loads(text)) == report
    assert report.certificate.spec.label_flip_cost == math.inf and report.rounds[0].gap == math.inf
