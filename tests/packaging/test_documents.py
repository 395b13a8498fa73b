"""What the documents tell a reader to type works: Python runs, tables of TOML are the contracts, commands are known."""

from __future__ import annotations

import importlib
import re
import shlex
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

from api.cli import main as server_cli
from api.cli.main import COMMANDS
from services.contracts.history.plan_notices import plan_notices
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.machines.target import Target
from services.contracts.plans.plan import Plan
from services.process.settings import Settings
from services.site_agent import cli as site_cli
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.settings import SiteSettings

WITHOUT_ACTIONS = ("up", "demo", "migrate", "verify", "backup", "restore", "doctor")

ROOT = Path(__file__).parents[2]
MAIN = {"ballast": server_cli.main, "ballast-site": site_cli.main}
PROGRAMS = {"make", "pip", "ballast", "ballast-site", "curl", "python"}
SITE = 'site_id = "plant-1"\nservers = ["tls://oem:4222"]\n[data]\nkind = "csv"\npath = "rows.csv"\n'
PLAN = 'name = "a-plan"\nasset_type = "triplex-pump"\n'


def _blocks() -> list[str]:
    """Indented blocks of README and guides; Python as it is, what is separated by blank lines else one by one."""
    files = [ROOT / "README.md", *sorted((ROOT / "infra/guides").glob("*.md"))]
    text = "\n".join(each.read_text(encoding="utf-8") for each in files)
    found = re.findall(r"(?:^    .*\n(?:^\n(?=    ))*)+", text, re.M)
    blocks = [textwrap.dedent(block) for block in found]
    return [part for block in blocks for part in ([block] if _kind(block) == "python" else block.split("\n\n"))]


def _kind(block: str) -> str:
    if re.search(r"^(import|from) ", block, re.M):
        return "python"
    return "toml" if re.match(r"[\w.]+ = |\[", block) else "shell"


def _of_kind(kind: str) -> list[str]:
    return [block for block in _blocks() if _kind(block) == kind]


def test_blocks_of_every_kind_are_found() -> None:
    assert {kind: len(_of_kind(kind)) for kind in ("python", "toml", "shell")} == {"python": 1, "toml": 19, "shell": 13}


@pytest.mark.parametrize("block", _of_kind("python"))
def test_python_runs(block: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", block], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("table", _of_kind("toml"))
def test_toml_is_what_the_contracts_read(table: str) -> None:
    values = tomllib.loads(table)
    if "target" in values:
        feature = Feature(name="flow", unit="1", low=0.0, high=1.0)
        classes = (FaultClass(name="healthy", severity=0), FaultClass(name="leak", severity=1))
        target = Target.model_validate(values["target"])
        assert AssetType(name="pump", features=(feature,), fault_classes=classes, target=target).target == target
        return
    if {"servers", "logging", "tracing"} & set(values):
        assert SiteSettings.model_validate(tomllib.loads(SITE) | values)
        assert "servers" in values or Settings.model_validate({"home": ROOT} | values)
        return
    whole = values if "name" in values else tomllib.loads(PLAN) | values
    assert Plan.model_validate(whole).name == whole["name"]


def _commands(block: str) -> list[list[str]]:
    lines = block.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


@pytest.mark.parametrize("words", [words for block in _of_kind("shell") for words in _commands(block)], ids=" ".join)
def test_commands_are_known(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """In this process: one import for all commands. That the installed programs start, `test_wheel` shows."""
    program, *rest = words
    assert program in PROGRAMS
    if program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
        assert rest[0] in targets
    if program in ("ballast", "ballast-site"):
        options = [word for word in rest if word.startswith("--")]
        subcommands = [word for word in rest[: 2 if program == "ballast" else 1] if re.fullmatch(r"[a-z-]+", word)]
        if program == "ballast":
            assert rest[0] in COMMANDS
            subcommands = subcommands if rest[0] not in WITHOUT_ACTIONS else subcommands[:1]
        with pytest.raises(SystemExit) as ended:
            MAIN[program]([*subcommands, "--help"])
        said = capsys.readouterr()
        assert ended.value.code == 0, said.err
        assert all(option in said.out for option in options), said.out


def test_what_the_guides_import_by_name_is_there() -> None:
    """Functions after the module that has them: `module.function(...)`, and a call that follows a module's name."""
    text = "".join(each.read_text(encoding="utf-8") for each in sorted((ROOT / "infra/guides").glob("*.md")))
    named = re.findall(r"`(models(?:\.[a-z]\w*)+)\.(\w+)\(", text)
    named += re.findall(r"`(models(?:\.[a-z]\w*)+)`(?:,[^`.]*|: )`(\w+)\(", text)
    assert ("models.fairness", "relative_unfairness") in named and ("models.features.products", "product_lift") in named
    assert [(module, name) for module, name in named if not hasattr(importlib.import_module(module), name)] == []


def test_the_readmes_plan_has_no_gate_that_its_plants_keep_from_holding(tmp_path: Path) -> None:
    """At plants that are set up by the words of the README's line, its plan can make a champion."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("    ballast-site enrol "))
    options = [word for word in shlex.split(line) if word in ("--own-scores", "--seen-alone")]
    assert site_cli.main(["init", "--site-id", "plant-7", "--dir", str(tmp_path / "p"), *options]) == 0
    policy = SitePolicy.from_toml(tmp_path / "p" / "policy.toml")
    (table,) = re.findall(r"(?:^    .*\n|^\n)*^    min_site_f1 = .*\n", text, re.M)
    plan = Plan.model_validate(tomllib.loads(textwrap.dedent(table)))
    assert plan.reveal in policy.reveal and plan.method in policy.methods
    assert policy.own_scores, plan_notices(plan)


def test_what_the_documents_point_at_is_there() -> None:
    """Links between files, files named in code, and modules to be run; of all Markdown in the tree."""
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("no clone")
    missing, looked_at = [], 0
    for name in listed.stdout.split():
        text, beside = (ROOT / name).read_text(encoding="utf-8"), (ROOT / name).parent
        links = [beside / link for link in re.findall(r"\]\(([^)#\s:]+)(?:#[^)]*)?\)", text)]
        named = re.findall(r"`((?:tests|services|api|models|flows|infra)/[\w/.-]+?\w/?)`", text)
        files = [ROOT / path for path in named if ".." not in path]
        modules = [ROOT / module.replace(".", "/") for module in re.findall(r"python -m (tests(?:\.\w+)+)", text)]
        looked_at += len(links) + len(files) + len(modules)
        missing += [f"{name}: {path}" for path in links + files if not path.exists()]
        missing += [f"{name}: {path}" for path in modules
                    if not (path.with_suffix(".py").exists() or (path / "__main__.py").exists())]
    assert missing == [] and looked_at > 300


def test_the_tests_that_documents_name_are_there() -> None:
    """`path::name` in that file; where the path is left out (`...::name`) in any."""
    files = {each: each.read_text(encoding="utf-8") for each in sorted((ROOT / "tests").rglob("test_*.py"))}
    there = {each: set(re.findall(r"^\s*(?:async )?def (test_\w+)", text, re.M)) for each, text in files.items()}
    missing, looked_at = [], 0
    for each in (ROOT / "infra/threat-model.md", ROOT / "SECURITY.md", ROOT / "README.md"):
        for path, name in re.findall(r"`([\w/.]*)::(test_\w+)`", each.read_text(encoding="utf-8")):
            looked_at += 1
            names = set().union(*there.values()) if path in ("", "...") else there.get(ROOT / path, set())
            missing += [] if name in names else [f"{each.name}: {path}::{name}"]
    assert missing == [] and looked_at > 20
