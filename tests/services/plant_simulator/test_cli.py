"""``ballast simulate``: its arguments and its one line."""

import argparse
import json

import pytest

from services.contracts.errors import InvalidInputError
from services.plant_simulator import cli


def run(*words):
    parser = argparse.ArgumentParser()
    cli.add_arguments(parser)
    return cli.run(parser.parse_args([str(word) for word in words]))


def test_it_writes_plants_and_says_so_in_one_line(tmp_path, capsys):
    out = tmp_path / "plants"
    assert run("--out", out, "--sites", 2, "--train", 8, "--test", 8, "--faults", "worn_bearing", "leak", "leak") == 0
    assert sorted(path.name for path in out.iterdir()) == ["plant-1", "plant-2"]
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    assert "8 training and 8 test measurements of 2 plants (nominal, leak, worn_bearing)" in said
    assert str(out) in said


def test_what_is_asked_for_is_what_is_simulated(tmp_path, capsys):
    out = tmp_path / "plants"
    words = ["--sites", 1, "--train", 4, "--test", 6, "--seed", 3, "--scenario", "noisy-labels", "--json"]
    assert run("--out", out, *words) == 0
    about = json.loads((out / "plant-1" / "plant.json").read_text())
    assert (about["seed"], about["scenario"], about["measurements"]) == (3, "noisy-labels", {"train": 4, "test": 6})
    told = json.loads(capsys.readouterr().out)
    assert (told["plants"], told["train"], told["test"], told["seed"]) == (["plant-1"], 4, 6, 3)


def test_defaults_are_the_study(tmp_path):
    parser = argparse.ArgumentParser()
    cli.add_arguments(parser)
    args = parser.parse_args(["--out", str(tmp_path)])
    assert (args.sites, args.seed, args.scenario, args.train, args.test) == (4, 0, "nominal", 400, 1000)
    assert (args.faults, args.format) == (["leak"], "npz")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--scenario", "hard"], "unknown scenario 'hard'"),
        (["--faults", "rust"], "unknown fault 'rust'"),
        (["--format", "csv"], "unknown format 'csv'"),
        (["--sites", "-2"], "sites must be between"),
    ],
)
def test_bad_arguments_raise_one_line(tmp_path, words, says):
    with pytest.raises(InvalidInputError, match=says) as caught:
        run("--out", tmp_path / "out", *words)
    assert "\n" not in str(caught.value)
