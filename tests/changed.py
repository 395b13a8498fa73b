"""The tests of what changed since the branch left main: ``python -m tests.changed`` names them for ``make check``."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
ALWAYS = ("tests/mutants",)
"""Quick, and true of any change: every named break still fits the tree."""


def changed_files(root: Path = ROOT) -> list[str]:
    """Files that differ from where the branch left main, new ones too; without a main branch, from the last commit."""
    bases = (_git(root, "merge-base", "HEAD", name) for name in ("origin/main", "main"))
    base = next((found[0] for found in bases if found), "HEAD")
    return [*_git(root, "diff", "--name-only", base), *_git(root, "ls-files", "--others", "--exclude-standard")]


def mirrored_tests(changed: Iterable[str], root: Path = ROOT) -> list[str]:
    """Test files and folders that mirror changed files: the own test file, else the nearest folder with tests."""
    found = set(ALWAYS)
    for path in (Path(name) for name in changed if name.endswith((".py", ".toml", ".html", ".svg"))):
        if path.parts[0] == "tests":
            own, folder = path, path.parent
        else:
            own, folder = Path("tests", path.with_name(f"test_{path.stem}.py")), Path("tests", path.parent)
        if own.name.startswith("test_") and (root / own).is_file():
            found.add(str(own))
            continue
        while folder.parts and not any((root / folder).glob("test_*.py")):
            folder = folder.parent
        if folder.parts:
            found.add(str(folder))
    return sorted(found)


def _git(root: Path, *words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else []


if __name__ == "__main__":
    print(" ".join(mirrored_tests(changed_files())))
