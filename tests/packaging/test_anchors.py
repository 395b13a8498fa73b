"""Links of the documents to a section lead to a heading that is there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def headings(path: Path) -> set[str]:
    """Anchors of a Markdown file: headings in small letters, without punctuation, hyphens for spaces."""
    found = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in found}


def test_headings_become_anchors(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# How sure: sets, and `more`\n\ntext # no heading\n", encoding="utf-8")
    assert headings(page) == {"how-sure-sets-and-more"}


def test_every_anchor_is_a_heading() -> None:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("no clone")
    missing, looked_at = [], 0
    for name in listed.stdout.split():
        path = ROOT / name
        for target, anchor in re.findall(r"\]\(([^)#\s:]*)#([\w-]+)\)", path.read_text(encoding="utf-8")):
            page = path.parent / target if target else path
            looked_at += 1
            if page.suffix == ".md" and anchor not in headings(page):
                missing.append(f"{name}: {target}#{anchor}")
    assert missing == [] and looked_at > 5
