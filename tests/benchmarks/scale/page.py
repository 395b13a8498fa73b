"""The page of a measurement: the table, what was modelled, where the wall is, and the design that moves it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from tests.benchmarks.command import output_file
from tests.benchmarks.scale.network import Network

COLUMNS = (
    "plants", "cohort", "unlike", "rounds", "gap", "seconds", "network s", "plants s", "server step s",
    "server masks s", "kB a plant", "step MB", "state MB",
)
MOVES = {
    "network": "Rounds wait for the slowest plant: fewer rounds (more questions a message), or rounds that close "
    "without the slowest (sum_threshold, whose sums still are cuts). Where the server's line is full: smaller cohorts, "
    "whose shares are fewer, or words in place of JSON.",
    "plants": "The slowest plant's machine: fewer questions a message, or rows summed up before the solve.",
    "server step": "The step grows with cohorts times cuts: larger cohorts, whose masks cost more, or cuts of cohorts "
    "that are alike added up to one.",
    "server masks": "Masks grow with the square of a cohort: smaller cohorts, a sparse graph of masks in a large one, "
    "or processes beside the server that each take the masks off some cohorts, which share nothing.",
}


def page_file(text: str) -> Path:
    """A file that can be written, by whose ending its form is known; ``argparse.ArgumentTypeError`` otherwise."""
    path = output_file(text)
    if path.suffix not in (".md", ".html"):
        raise argparse.ArgumentTypeError(f"{text} ends neither with .md nor with .html")
    return path


def page_text(rows: Sequence[Mapping[str, Any]], network: Network, *, html: bool) -> str:
    """The page as Markdown or HTML."""
    cells = [[_cell(row[name]) for name in COLUMNS] for row in rows]
    said = [
        "Processor seconds of one thread at the server, seconds of the slowest plant, and seconds of a modelled "
        f"network: {network.told()}. They add up: nothing is taken to overlap.",
        *(f"{row['plants']} plants: the wall is {row['wall']}. {MOVES[row['wall']]}" for row in rows),
    ]
    if not html:
        lines = ["| " + " | ".join(line) + " |" for line in (list(COLUMNS), ["---"] * len(COLUMNS), *cells)]
        return "# A plan over many plants\n\n" + "\n".join(lines) + "\n\n" + "\n\n".join(said) + "\n"
    head = "".join(f"<th>{escape(name)}</th>" for name in COLUMNS)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in cells)
    told = "".join(f"<p>{escape(text)}</p>" for text in said)
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>A plan over many plants</title>'
        f"<h1>A plan over many plants</h1><table border=1><tr>{head}</tr>{body}</table>{told}</html>\n"
    )


def _cell(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
