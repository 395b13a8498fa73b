"""A fairness report as one HTML page that needs nothing else."""

from __future__ import annotations

from html import escape

from services.contracts.evaluation.fairness import BASIS_NAMES, FairnessIndices, FairnessReport
from services.reporting.html import figure, page, table
from services.reporting.lorenz_chart import lorenz_chart

EXPLAINED = {
    "relative_unfairness": "worst 20 % of the sites by best 20 % (relative unfairness)",
    "palma": "worst 10 % of the sites by best 40 % (Palma)",
    "gini": "Gini coefficient",
    "atkinson": "Atkinson index, aversion 1",
    "atkinson_infinite": "Atkinson index, infinite aversion",
    "worst_share": "mean of the worst 20 % of the sites",
    "best_share": "mean of the best 20 % of the sites",
    "worst_site": "worst site",
    "mean": "mean, weighted as the sites are",
}


def fairness_page(report: FairnessReport) -> str:
    """HTML page of a fairness report."""
    title = f"Fairness of model {report.name}" + (f" version {report.version}" if report.version else "")
    notes = "".join(f"<p>{escape(note)}</p>" for note in report.notes)
    chart = lorenz_chart(report, "svg").decode() if report.indices else ""
    body = "\n".join(
        part
        for part in (
            f"<h1>{escape(title)}</h1>",
            "<p>How unequally the version serves the sites. 1 (ratios) and 0 (Gini, Atkinson) mean that all are "
            "served alike; less is better everywhere.</p>",
            notes,
            _indices(report),
            chart[chart.find("<svg") :] if chart else "",
            _generalisation(report),
            _sites(report),
        )
        if part
    )
    return page(title, body)


def _indices(report: FairnessReport) -> str:
    columns = index_columns(report)
    rows = [[text, *(figure(getattr(found, name)) for found in columns.values())] for name, text in EXPLAINED.items()]
    return table("Indices", ("index", *columns), rows) if columns else ""


def _generalisation(report: FairnessReport) -> str:
    found = report.generalisation
    if found is None:
        return ""
    over = (
        "the mixtures of the sites that relative fairness weighs" if found.phi else
        f"every mixture in which no site weighs above {figure(1 / found.alpha)} times its equal share"
    )
    tried = f", for {found.lifts} lifts of which a tuning chose one" if found.lifts > 1 else ""
    says = "" if found.added < 1 else " Above 1 it says nothing: there are too few rows for so many weights."
    return (
        f"<p>On new data the share of wrong diagnoses is at most {figure(found.added)} above that of the training "
        f"rows, with probability {figure(1 - found.delta)}, for {over} (relative-fairness paper, Theorem 4: "
        f"{found.rows_per_site} rows a site, VC dimension {found.vc_dimension}, skewness {figure(found.skewness)}"
        f"{tried}).{says}</p>"
    )


def index_columns(report: FairnessReport) -> dict[str, FairnessIndices]:
    """Indices by what they are over, the champion's beside this version's own."""
    champion = {indices.basis: indices for indices in report.champion_indices}
    columns = {}
    for indices in report.indices:
        what = BASIS_NAMES[indices.basis]
        columns[what] = indices
        if indices.basis in champion:
            columns[f"{what}, champion (version {report.champion_version})"] = champion[indices.basis]
    return columns


def _sites(report: FairnessReport) -> str:
    scored = "F-1" if report.unit is None else f"mean absolute error ({report.unit})"
    head = ("site", "weight", "weight in the worst mix", "worst-case risk", "held-out loss", scored, "answered last")
    rows = [
        [
            site.site_id, figure(site.weight), figure(site.worst_weight), figure(site.worst_case_risk),
            figure(site.loss), figure(site.f1 if report.unit is None else site.mae), "yes" if site.fresh else "no",
        ]
        for site in report.sites
    ]
    return table("Sites", head, rows)
