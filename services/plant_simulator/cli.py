"""Arguments of ``ballast simulate`` and what it does."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from services.plant_simulator.faults import FAULTS, ordered
from services.plant_simulator.scenarios import SCENARIOS, TEST, TRAINING
from services.plant_simulator.writer import FORMATS, simulate_plants
from services.process.command_line import add_json, tell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``ballast simulate``."""
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="new or empty folder for plant-1, ...")
    parser.add_argument("--sites", type=int, default=4, help="number of plants (default 4)")
    parser.add_argument("--seed", type=int, default=0, help="seed of everything random (default 0)")
    parser.add_argument("--scenario", default="nominal", help=f"one of {', '.join(SCENARIOS)} (default nominal)")
    parser.add_argument("--train", type=int, default=TRAINING, help="training measurements of all plants (default 400)")
    parser.add_argument("--test", type=int, default=TEST, help="test measurements of all plants (default 1000)")
    parser.add_argument(
        "--faults", nargs="+", default=["leak"], metavar="FAULT",
        help=f"some of {', '.join(FAULTS)}; with several, their combinations too (default leak)",
    )
    parser.add_argument("--format", default="npz", help=f"one of {', '.join(FORMATS)} (default npz)")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Simulate as the arguments say and print one line; raise :class:`InvalidInputError` when they do not fit."""
    began, faults = time.monotonic(), ordered(args.faults)
    folders = simulate_plants(
        args.out,
        sites=args.sites,
        seed=args.seed,
        scenario=args.scenario,
        n_train=args.train,
        n_test=args.test,
        faults=faults,
        format=args.format,
    )
    seconds = time.monotonic() - began
    result = {
        "folder": str(args.out), "plants": [folder.name for folder in folders], "train": args.train, "test": args.test,
        "scenario": args.scenario, "faults": faults, "seed": args.seed, "format": args.format, "seconds": seconds,
    }
    told = (
        f"{args.train} training and {args.test} test measurements of {len(folders)} plants ({args.scenario}, "
        f"{', '.join(faults)}) in {seconds:.1f} s: {args.out}/plant-1 .. plant-{len(folders)}"
    )
    tell(args, result, told)
    return 0
