"""The tables of a report that are about sites: what each brought, how fresh it is, who was missing or left out."""

from __future__ import annotations

from collections.abc import Sequence

from services.contracts.history.run import ExcludedSite
from services.contracts.problems.tuning_curve import cost_words
from services.contracts.versions.report import MissedRound, ModelReport, SiteReport
from services.reporting.html import figure, table

_NOT_COUNTED = (
    "<p>F-1 is not known, for no held-out rows could be counted: a site counts a class where it holds out as many of "
    "its rows as its policy asks for (<code>min_class_samples</code>), and none where it holds out too few in all.</p>"
)
MOST_MISSED = 200  # rows of a table that a person still reads; report.json has all


def sites_table(report: ModelReport) -> str:
    """Each site with its ball, its scores and how often it answered; and how fresh it is.

    A loss of the scores of all classes has no ball, and so no columns of it.
    """
    balls = report.certificate.spec.loss.has_ball
    scores = ("F-1",) if report.unit is None else (f"mean error ({report.unit})", "R2", "coverage")
    cost = cost_words(report.certificate.spec.loss.name)
    ball, risk = (("radius", "confidence", cost), ("worst-case risk",)) if balls else ((), ())
    head = (
        "site", "weight", "worst weight", *ball, "samples", *risk, *scores, "answered", "absent", "late", "refused",
        "rejected", "last answer", "bytes to site", "bytes from site",
    )
    rows = [
        [
            site.site_id, figure(site.weight), figure(site.worst_weight), *(_site_ball(site) if balls else ()),
            figure(site.n_samples), *([figure(site.worst_case_risk)] if balls else []),
            *_site_scores(site, report.unit), str(site.accepted), str(site.absent), str(site.late), str(site.refused),
            str(site.rejected), figure(site.last_accepted_round), str(site.bytes_to_site), str(site.bytes_from_site),
        ]
        for site in report.sites
    ]
    return table("Sites", head, rows) + _freshness(report)


def _site_ball(site: SiteReport) -> tuple[str, ...]:
    """Radius, its confidence and the cost of a flip, or of moving a target, of a site's ball."""
    return (
        figure(site.radius) + (" (estimate)" if site.radius_is_estimate else ""),
        "none" if site.confidence is None else figure(site.confidence),
        "as the model" if site.label_flip_cost is None else figure(site.label_flip_cost),
    )


def _freshness(report: ModelReport) -> str:
    """How fresh each plant is; empty where the rounds waited for all."""
    found = report.certificate.freshness
    if found is None:
        return ""
    rows = [
        [
            each.site_id, figure(each.question), figure(each.came), "yes" if each.at_model else "NO: by its cuts",
            "yes" if each.at_work else "",
        ]
        for each in found
    ]
    head = ("site", "newest question answered", "in round", "told its risk at the model", "at work at the end")
    return table("How fresh each plant is", head, rows)


def _site_scores(site: SiteReport, unit: str | None) -> tuple[str, ...]:
    if unit is None:
        return (figure(site.f1),)
    return (figure(site.mae), figure(site.r2), figure(site.coverage))


def confusion_tables(report: ModelReport) -> list[str]:
    """Counts of true by diagnosed class, with recalls: of all sites together, then of each that sent any.

    Where no class could be counted, why its scores are not known.
    """
    if report.unit is None and report.f1 is None and report.confusion is None:
        return [_NOT_COUNTED]
    named = [("all sites", report.confusion, report.recall)]
    named += [(site.site_id, site.confusion, site.recall) for site in report.sites]
    head = ("true class", *(f"diagnosed {name}" for name in report.classes), "recall")
    tables = [
        table(f"Held-out rows by true and diagnosed class, {name}", head, [
            [true, *map(str, row), figure(share)]
            for true, row, share in zip(report.classes, counts, recall, strict=True)
        ])
        for name, counts, recall in named
        if counts is not None and recall is not None
    ]
    note = (
        "<p>F-1 is the mean over the classes that the counted rows have; with two classes it is that of the fault, or "
        "where no counted row is faulty that of the other. Classes with fewer rows than a site's policy asks for are "
        "not counted.</p>"
    )
    return [note, *tables] if tables else []


def excluded_table(excluded: Sequence[ExcludedSite]) -> str:
    """Who was left out, from which round on, and why; empty where nobody was."""
    rows = [[str(each.round), each.site_id, each.code, each.reason] for each in excluded]
    caption = "Sites that the run went on without"
    return table(caption, ("from round", "site", "what", "why"), rows) if rows else ""


def missed_table(caption: str, missed: Sequence[MissedRound]) -> str:
    """Who was missing in which round, and why; empty where nobody was."""
    if not missed:
        return ""
    rows = [
        [
            str(item.round) if item.round else "joining", item.site_id, item.status.replace("_", " "),
            item.reason or item.code,
        ]
        for item in missed[:MOST_MISSED]
    ]
    more = f"<p>and {len(missed) - MOST_MISSED} more, in report.json</p>" if len(missed) > MOST_MISSED else ""
    return table(caption, ("round", "site", "status", "why"), rows) + more
