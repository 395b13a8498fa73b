"""A model report as one HTML page that needs nothing else: no script, no font, no picture from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from services.contracts.plain_words import counted
from services.contracts.problems.lift import LiftSpec
from services.contracts.problems.support import support_name
from services.contracts.problems.training_spec import RadiusRule
from services.contracts.versions.report import CertificateReport, GateResult, ModelReport
from services.reporting.calibration_rows import calibration_rows
from services.reporting.curve_chart import curve_charts
from services.reporting.gap_chart import gap_chart
from services.reporting.html import figure, page, table
from services.reporting.several_classes import several_classes
from services.reporting.site_tables import confusion_tables, excluded_table, missed_table, sites_table
from services.reporting.tuning_section import tuning_section
from services.reporting.undiagnosed import undiagnosed

MOST_SENSORS = 60  # curves on a page; a browser draws more slowly


def report_attachments(report: ModelReport) -> dict[str, str]:
    """What stands beside a report's JSON in the registry, by file name: ``report.html`` and ``gap.svg``."""
    return {"report.html": report_page(report), "gap.svg": gap_chart(report.rounds, report.wanted_gap)}


def report_page(report: ModelReport) -> str:
    """HTML page of a report."""
    title = f"Model {report.name}" + (f" version {report.version}" if report.version else "")
    sections = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{escape(_verdict(report))}</p>",
        *(f"<p><strong>{escape(each)}</strong></p>" for each in undiagnosed(report.classes, report.confusion)),
        _certificate(report),
        tuning_section(report.certificate.tuning, report.certificate.spec.loss.name),
        *_gaps(report),
        _gates(report.gates),
        sites_table(report),
        *confusion_tables(report),
        *_curves(report),
        excluded_table(report.excluded),
        missed_table("Sites that did not join the run", report.absentees),
        missed_table("Rounds that sites missed", report.missed),
    ]
    body = "\n".join(section for section in sections if section)
    return page(title, body)


def _gaps(report: ModelReport) -> list[str]:
    if report.certificate.spec.network is not None:
        return []
    return ["<h2>Certified gap by round</h2>", gap_chart(report.rounds, report.wanted_gap)]


def _verdict(report: ModelReport) -> str:
    certificate = report.certificate
    answered = "the last round" if certificate.freshness is None else "at the model itself"
    fresh = "" if certificate.fresh_weight >= 1 else (
        f" Only {certificate.fresh_weight:.1%} of the sites' weight answered {answered}; "
        "the absent sites enter the bounds by their last answers."
    )
    gates = "No gate was asked for." if not report.gates else (
        "Every gate holds." if report.promotable else "Not every gate holds."
    )
    summed = several_classes(certificate.spec, len(report.classes))
    whose = "it is" if certificate.coupling is None else "that of the planes before their coupling is"
    if certificate.spec.network is not None:
        return (
            "The model has no certificate: the objective of a network is not convex, so nothing proves how far it is "
            f"from the best. What the method minimised is the {certificate.objective_name}: "
            f"{figure(certificate.objective)} after {counted(certificate.rounds, 'round')} ({report.seconds:.1f} s). "
            f"Held-out rows speak for the model alone.{fresh} {gates}"
        )
    rounds = counted(certificate.rounds, "round")
    at_most = "at most " if certificate.risk_is_from_above else ""
    stated = f"The worst-case risk of the model is {at_most}{figure(certificate.worst_case_risk)}."
    if not certificate.spec.loss.has_ball:
        stated = "The model was trained without a ball around the sites' data: no worst-case risk is stated."
    return (
        f"{stated} What the method minimised is the "
        f"{certificate.objective_name}: after {rounds} ({report.seconds:.1f} s) {whose} at most "
        f"{figure(certificate.objective)}, and no model of its kind has one below {figure(certificate.lower_bound)}: "
        f"certified relative gap {figure(certificate.gap)}.{summed and ' ' + summed}{fresh} {gates}"
    )


def _certificate(report: ModelReport) -> str:
    spec = report.certificate.spec
    rows = [
        ("run", report.run_id),
        ("plan", report.plan),
        ("method", report.method),
        ("solvers", "; ".join(report.certificate.solvers) or "none named"),
        ("asset type", f"{report.asset_type} ({report.fingerprint[:16]})"),
        ("created", report.created_at.isoformat(timespec="seconds")),
        ("transport norm", spec.transport_norm),
        ("loss", str(spec.loss)),
        *_ball(report),
        ("what the coordinator saw", _seen(report.certificate)),
        ("noise on the sums", _noise(report.certificate)),
        ("ball around the sites' weights", report.certificate.mixture.words),
        ("confidence of the mixture", _confidence(report.certificate)),
        ("lift", _lift(spec.lift)),
        *([("ball", spec.ball_words)] if spec.ball_words else []),
        *([] if spec.network is None else [("network", spec.network.words)]),
        ("support", support_name(spec.support).replace("_", " ")),
        ("intercept", "yes" if spec.fit_intercept else "no"),
        *_said(report.certificate),
        *(_class_scores(report) if report.unit is None else _target_scores(report, report.unit)),
        *calibration_rows(report.calibration_facts, report.unit),
    ]
    return table("The model", (), [[name, value] for name, value in rows])


def _ball(report: ModelReport) -> list[tuple[str, str]]:
    """The terms of the balls around the sites' data; a loss of the scores of all classes is trained without one."""
    spec = report.certificate.spec
    if not spec.loss.has_ball:
        return [("balls around the sites' data", "none: losses of the rows themselves are minimised")]
    cost = "cost of a label flip" if report.unit is None else "cost of moving a target by its range"
    return [(cost, figure(spec.label_flip_cost)), ("radius", _rule(spec.radius))]


def _class_scores(report: ModelReport) -> list[tuple[str, str]]:
    return [
        ("F-1, all held-out parts", figure(report.f1)),
        ("F-1, worst site", figure(report.worst_site_f1)),
    ]


def _target_scores(report: ModelReport, unit: str) -> list[tuple[str, str]]:
    rows = [
        ("target", f"{report.target} in {unit}"),
        ("mean absolute error, all held-out parts", figure(report.mae)),
        ("mean absolute error, worst site", figure(report.worst_site_mae)),
        ("root mean squared error", figure(report.rmse)),
        ("R2", figure(report.r2)),
        ("mean pinball loss", figure(report.pinball)),
    ]
    interval = report.error_interval
    if interval is not None:
        ends = f"from {figure(interval.below)} {unit} below to {figure(interval.above)} {unit} above the estimate"
        rows += [
            (f"interval of confidence {figure(interval.confidence)}", f"{ends}: proven for the mixture, and wide"),
            ("held-out targets inside it", figure(report.coverage)),
        ]
    return rows


def _said(certificate: CertificateReport) -> list[tuple[str, str]]:
    """What the method says of its result, and the bounds of a convex part, where there are any."""
    rows = [("what the method says", certificate.note)] if certificate.note else []
    part = certificate.convex_part
    if part is not None:
        bounds = f"from {figure(part.lower)} to {figure(part.upper)}, relative gap {figure(part.gap)}"
        rows += [("bounds of the convex part alone", f"{bounds}: tells a critical point, not the best model")]
    return rows


def _seen(certificate: CertificateReport) -> str:
    if certificate.reveal == "each site":
        return "the answers of each site"
    count = len(certificate.cohorts)
    return f"masked sums over {count} {'cohort' if count == 1 else 'cohorts'} of sites, no site's own answers"


def _noise(certificate: CertificateReport) -> str:
    noise = certificate.noise
    if noise is None:
        return "none"
    return (
        f"epsilon {figure(noise.epsilon)} at delta {figure(noise.delta)} for a row, "
        f"over {counted(noise.rounds, 'round')}; the bounds hold with probability "
        f"{figure(noise.confidence)}, the lower one for weights of a norm up to {figure(noise.within)}"
    )


def _rule(rule: RadiusRule) -> str:
    if rule.rule != "confidence":
        return f"{rule.rule}, {figure(rule.value)}"
    return f"by confidence {figure(rule.confidence)}, " + (
        "estimated by resampling" if rule.tail is None else "by the given constants"
    )


def _confidence(certificate: CertificateReport) -> str:
    if certificate.mixture_confidence is None:
        return "none claimed"
    note = ", an estimate: radii come from resampling and prove none" if certificate.radii_are_estimates else ""
    return figure(certificate.mixture_confidence) + note


def _lift(lift: LiftSpec | None) -> str:
    if lift is None:
        return "none"
    return f"{lift.words} ({(lift.fingerprint or 'not pinned')[:16]})"


def _curves(report: ModelReport) -> list[str]:
    """A picture for each sensor, those that move a score the most first."""
    charts = curve_charts(report.curves, MOST_SENSORS)
    if not charts:
        return []
    sensors = len({curve.sensor for curve in report.curves})
    of = "the score of a class" if report.unit is None else f"{report.target} in {report.unit}"
    note = f"What each reading adds to {of}, from 0 in the middle of the sensor's range."
    if sensors > len(charts):
        note += f" The {len(charts)} of {sensors} sensors that add the most; report.json has all."
    return ["<h2>What each sensor says</h2>", f"<p>{escape(note)}</p>", *charts]


def _gates(gates: Sequence[GateResult]) -> str:
    rows = [
        [
            gate.name.replace("_", " "), figure(gate.wanted), figure(gate.found), "holds" if gate.holds else "FAILS",
            gate.reason,
        ]
        for gate in gates
    ]
    return table("Gates", ("gate", "wanted", "found", "outcome", "why"), rows) if rows else ""
