"""The lists of the command take the filters of the API."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from services.contracts.keys.signing import new_seed_file
from services.plant_simulator.assets import builtin_asset_type_path
from tests.api.conftest import a_plan

PUMP = str(builtin_asset_type_path("triplex-pump"))


def test_plans_and_their_versions(shell: Any, behind: Any) -> None:
    shell.good("asset-type", "add", PUMP)
    plans = behind.store.plans
    plans.create(a_plan("other"))
    plans.create(a_plan("held"), paused=True, actor="anna")
    plans.update(a_plan("held", max_rounds=7), actor="bert")

    def names(*words: str) -> list[str]:
        return [each["plan"]["name"] for each in shell.read("plan", "list", *words)]

    whole = names()
    assert whole == ["held", "other"]
    assert names("--paused") == ["held"] and names("--no-paused") == ["other"]
    assert names("--asset-type", "turbine") == [] and names("--asset-type", "triplex-pump") == whole
    code, _, err = shell.run("plan", "list", "--paused", "--no-paused")
    assert code == 2 and "not allowed with argument --paused" in err

    def versions(*words: str) -> list[int]:
        return [each["version"] for each in shell.read("plan", "history", "held", *words)]

    second = plans.versions("held")[1].created_at
    assert (versions(), versions("--actor", "bert")) == ([1, 2], [2])
    assert versions("--since", second.isoformat()) == [2] and versions("--until", second.isoformat()) == [1]
    assert versions("--until", (second - timedelta(days=2)).date().isoformat()) == []
    assert "max_rounds" in shell.good("plan", "history", "held", "--actor", "bert"), "against the one before it"
    said = shell.refused("plan", "history", "held", "--since", "2030-01-02", "--until", "2030-01-01")
    assert said.endswith("until 2030-01-01 00:00:00 comes before since 2030-01-02 00:00:00 (UTC)")
    assert versions("--since", "2030-01-02", "--until", "2030-01-02") == [], "no time is no wrong order"
    code, _, err = shell.run("plan", "history", "held", "--since", "yesterday")
    assert code == 2 and "'yesterday' is no moment" in err


def test_sites_codes_and_events(shell: Any, behind: Any, tmp_path: Path) -> None:
    shell.good("asset-type", "add", PUMP)
    key = new_seed_file(tmp_path / "plant-6.nk")
    shell.good("site", "enrol", "plant-6", "--key", key)
    shell.good("site", "suspend", "plant-6")

    def sites(*words: str) -> list[str]:
        return [each["site_id"] for each in shell.read("site", "list", *words)]

    assert sites("--status", "suspended") == ["plant-6"] and "plant-6" not in sites("--status", "active")
    assert "plant-6" not in sites("--asset-type", "triplex-pump")
    more = ("--certificate-sha256", "0" * 64, "--asset-type", "triplex-pump")
    made = [shell.read("site", "enrol-code", site, *more)["code_id"] for site in ("plant-7", "plant-7", "plant-8")]

    def codes(*words: str) -> list[str]:
        return sorted(each["code_id"] for each in shell.read("site", "enrol-codes", *words))

    assert codes() == sorted(made) and codes("plant-8") == made[2:] and codes("--state", "revoked") == made[:1]
    assert codes("plant-7", "--state", "open") == made[1:2]

    def events(*words: str) -> list[str]:
        return [each["target"] for each in shell.read("audit", "list", *words)]

    assert events("--action", "site.suspend") == ["site:plant-6"]
    assert events("--since", "2999-01-01") == [] and events("--until", "2999-01-01") == events()
    assert "comes before since" in shell.refused("audit", "list", "--since", "2030-01-02", "--until", "2030-01-01")


def test_models(shell: Any) -> None:
    for words, wanted in (
        ((), True), (("--prefix", "pum"), True), (("--prefix", "ump"), False), (("--asset-type", "turbine"), False),
        (("--champion",), True), (("--no-champion",), False),
    ):
        assert ("pumps" in [each["name"] for each in shell.read("model", "list", *words)]) == wanted, words


def test_a_filter_that_names_what_is_not_there_says_so_beside_the_empty_list(shell: Any, behind: Any) -> None:
    shell.good("asset-type", "add", PUMP)
    behind.store.plans.create(a_plan("other"))
    shell.good("site", "enrol-code", "plant-7", "--certificate-sha256", "0" * 64)
    kinds = [(name, "list", "--asset-type") for name in ("plan", "site", "model")]
    for words, wrong, said in (
        *((kind, "triplex-pumps", "asset type triplex-pumps; did you mean triplex-pump?") for kind in kinds),
        (("run", "list", "--plan"), "others", "plan others; did you mean other?"),
        (("run", "list", "--plan"), "weekly", "plan weekly"),
        (("site", "enrol-codes"), "plant-8", "site plant-8; did you mean plant-7?"),
    ):
        code, out, err = shell.run(*words, wrong, "--json")
        assert (code, out, err) == (0, "[]\n", f"ballast: note: there is no {said}\n"), words
    for words in (*((*kind, "triplex-pump") for kind in kinds), ("run", "list", "--plan", "other"),
                  ("site", "enrol-codes", "plant-7"), ("site", "enrol-codes", "plant-7", "--state", "used")):
        assert shell.run(*words)[2] == "", words
