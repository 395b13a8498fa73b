"""The demo's account: what happened, as JSON and as a short text."""

from __future__ import annotations

from typing import Any

from services.contracts.base import Contract


class SiteAccount(Contract):
    """One plant's part: its held-out F-1, how often it answered, and the bytes that left it."""

    site_id: str
    f1: float | None
    n_updates: int
    bytes_out: int


class Account(Contract):
    """What ``ballast demo --json`` writes. ``certified_gap`` is relative, ``seconds`` the whole demo's.

    ``reveal``: what the coordinator saw of the plants' answers.
    """

    scenario: str
    reveal: str
    rounds: int
    certified_gap: float
    worst_case_risk: float | None
    f1: float
    sites: tuple[SiteAccount, ...]
    fairness: dict[str, float]
    diagnosis: dict[str, Any]
    model: str
    model_version: str
    run_id: str
    outcome: str
    mlflow_run_id: str
    prefect_flow_run_id: str
    seconds: float
    training_seconds: float


def account_of_sites(version: dict[str, Any], rounds: list[dict[str, Any]]) -> tuple[SiteAccount, ...]:
    """Account of each site from the answers of the API: a version and the rounds of its run."""
    sites = []
    for site in version["sites"]:
        mine = [answer for record in rounds for answer in record["answers"] if answer["site_id"] == site["site_id"]]
        sites.append(
            SiteAccount(
                site_id=site["site_id"], f1=site["f1"],
                n_updates=sum(answer["status"] == "accepted" for answer in mine),
                bytes_out=sum(answer["bytes_in"] for answer in mine),
            )
        )
    return tuple(sites)


def account_of_fairness(report: dict[str, Any]) -> dict[str, float]:
    """Indices of the plants' held-out losses (of their worst-case risks where no plant has one)."""
    indices = report["indices"][0]
    return {name: float(indices[name]) for name in ("relative_unfairness", "gini", "worst_site", "mean")}


def render(account: Account) -> str:
    """Return the account as text, a fact a line."""
    found = account.diagnosis
    lines = [
        "",
        f"  rounds              {account.rounds} (in {account.training_seconds:.1f} s)",
        f"  the OEM saw         {'sums over the plants' if account.reveal == 'sums' else 'the answers of each plant'}",
        f"  certified gap       {account.certified_gap:.1e}: no linear model does better by more",
        f"  worst-case risk     {'not known' if account.worst_case_risk is None else f'{account.worst_case_risk:.4f}'}",
        f"  F-1, held out       {account.f1:.3f} over all plants",
    ]
    for site in account.sites:
        f1 = "none" if site.f1 is None else f"{site.f1:.3f}"
        lines.append(
            f"    {site.site_id:<17} {f1}   {site.n_updates} updates, {site.bytes_out / 1024:.1f} KiB left the plant"
        )
    fair = account.fairness
    lines.append(
        f"  fairness            the worst fifth of the plants has {fair['relative_unfairness']:.1f} times the loss of "
        f"the best, Gini {fair['gini']:.2f}"
    )
    sensors = ", ".join(sensor["feature"] for sensor in found["contributing_sensors"][:3])
    radius = found["robustness_radius"]
    lines += [
        f"  registry            {account.outcome}",
        f"  a fresh measurement {found['fault_class']} (severity {found['severity']}), "
        f"robustness radius {'without end' if radius is None else f'{radius:.3f}'}",
        f"    because of        {sensors}",
        f"  the whole demo      {account.seconds:.0f} s",
        "",
    ]
    return "\n".join(lines)
