"""What a real run leaves in the real MLflow: pictures, datasets and tags, and nothing that its mode does not show."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from models.evaluation.scores import f1_score


@pytest.mark.parametrize("reveal", ["each site", "sums"])
def test_a_run_leaves_its_pictures_datasets_and_tags(works: Any, reveal: str) -> None:
    plan = works.plan(f"pictures-{reveal.replace(' ', '-')}", reveal=reveal, max_rounds=15)
    run, _, version = works.train(plan)
    client = works.context.registry._store.client
    mlflow_run = client.get_run(works.context.registry.mlflow_run_id(version.name, version.version))
    files = {item.path for item in client.list_artifacts(mlflow_run.info.run_id)}
    assert {"gap.svg", "report.html", "report.json", "confusion.svg", "confusion.json"} <= files
    known = {"fairness.svg", "fairness.json"} & files
    assert known == ({"fairness.svg", "fairness.json"} if reveal == "each site" else set()), "no plant is shown on sums"
    with open(client.download_artifacts(mlflow_run.info.run_id, "confusion.json"), encoding="utf-8") as file:
        told = json.load(file)
    counts = np.array(told["true_by_diagnosed"])
    held_out = np.array([site.confusion for site in version.sites if site.confusion is not None])
    assert counts.sum() > 20 and f1_score(counts.astype(float)) == pytest.approx(version.f1)
    assert len(held_out) == 0 or (counts == held_out.sum(axis=0)).all()
    assert set(told["sites"]) == (set(works.doors) if reveal == "each site" else set())
    datasets = [each.dataset for each in mlflow_run.inputs.dataset_inputs]
    rows = {each.name: json.loads(each.profile)["num_rows"] for each in datasets}
    by_site = {site.site_id: site.n_samples for site in run.sites}
    assert rows == {f"plant {number} of 3": by_site[site.site_id] for number, site in enumerate(version.sites, 1)}
    tags = mlflow_run.data.tags
    assert tags["ballast.reveal"] == reveal
    assert tags["ballast.certificate"] == (version.certificate_sha256 or "none")
    shown = {name for name in mlflow_run.data.metrics if name.startswith(("site/", "fairness/"))}
    scored = {name for name in shown if name.endswith(("/f1", "/worst_case_risk", "gini", "worst_site"))}
    assert (scored != set()) == (reveal == "each site")
