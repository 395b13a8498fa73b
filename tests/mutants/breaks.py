"""Named breaks: a place in the source, what stands there, what a mistake would put there, and the tests that notice."""

from __future__ import annotations

import importlib.util
import tomllib
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
KEYS = {"name", "file", "old", "new", "tests"}


class BreakError(ValueError):
    """The list is not true: a text that is not there exactly once, a name given twice, a test file that is gone."""


@dataclass(frozen=True)
class Break:
    """``old`` stands exactly once in ``file`` and becomes ``new``; ``tests`` are files or ids of pytest."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def broken(self, root: Path) -> str:
        """Text of the file with the break in it; raise :class:`BreakError` where it does not fit the tree."""
        path = root / self.file
        if not path.is_file():
            raise BreakError(f"{self.name}: there is no file {self.file}")
        text = path.read_text(encoding="utf-8")
        if (count := text.count(self.old)) != 1:
            raise BreakError(f"{self.name}: the old text stands {count} times in {self.file}, not once")
        if self.old == self.new:
            raise BreakError(f"{self.name}: the new text is the old one")
        for test in self.tests:
            file, _, called = test.partition("::")
            if not (root / file).is_file():
                raise BreakError(f"{self.name}: there is no test file {file}")
            if called and f"def {called.partition('[')[0]}(" not in (root / file).read_text(encoding="utf-8"):
                raise BreakError(f"{self.name}: there is no test {called} in {file}")
        return text.replace(self.old, self.new)

    def apply(self, tree: Path) -> None:
        """Put the break into a copy of the tree."""
        self._write(tree, self.broken(tree))

    def take_back(self, tree: Path, root: Path) -> None:
        """Put the file of the whole tree in its place again."""
        self._write(tree, (root / self.file).read_text(encoding="utf-8"))

    def _write(self, tree: Path, text: str) -> None:
        path = tree / self.file
        # Python compares a file's time in seconds and its size: a break of the same size would not be seen.
        Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)
        path.write_text(text, encoding="utf-8")


def load_breaks(folder: Path = FOLDER) -> tuple[Break, ...]:
    """All breaks of the lists (``*.toml``) in a folder, in the lists' order; raise :class:`BreakError`."""
    found: list[Break] = []
    for path in sorted(folder.glob("*.toml")):
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["break"]:
            if set(entry) != KEYS or not entry["tests"]:
                raise BreakError(f"{path.name}: {entry.get('name')}: a break has {', '.join(sorted(KEYS))}")
            found.append(Break(**entry | {"tests": tuple(entry["tests"])}))
    names = [each.name for each in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise BreakError(f"given twice: {', '.join(twice)}")
    return tuple(found)
