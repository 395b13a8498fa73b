"""The list of breaks is true, and the runner tells a break that is noticed from one that is not."""

from __future__ import annotations

import ast
from itertools import groupby
from pathlib import Path

import pytest

from tests.mutants.breaks import Break, BreakError, load_breaks

ROOT = Path(__file__).parents[2]


BREAKS = groupby(sorted(load_breaks(), key=lambda each: each.file), lambda each: each.file)


@pytest.mark.parametrize(("file", "breaks"), [(file, list(each)) for file, each in BREAKS])
def test_every_break_fits_the_tree_and_still_parses(file: str, breaks: list[Break]) -> None:
    """All of one file together: there are thousands."""
    wrong = {}
    for each in breaks:
        try:
            text = each.broken(ROOT)
            if file.endswith(".py"):
                ast.parse(text, file)
        except (BreakError, SyntaxError) as error:
            wrong[each.name] = str(error)
    assert wrong == {}


def test_a_text_that_does_not_stand_exactly_once_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("a = 1\nb = 1\n")
    (tmp_path / "test_one.py").write_text("def test_a(): ...\n")
    for old, count in (("= 1", 2), ("= 2", 0)):
        with pytest.raises(BreakError, match=f"stands {count} times in one.py"):
            Break("name", "one.py", old, "= 3", ("test_one.py",)).broken(tmp_path)
    for file, test in (("two.py", "test_one.py"), ("one.py", "test_two.py"), ("one.py", "test_one.py::test_b")):
        with pytest.raises(BreakError, match="there is no"):
            Break("name", file, "a = 1", "a = 2", (test,)).broken(tmp_path)


def test_a_break_is_applied_and_taken_back(tmp_path: Path) -> None:
    for folder in ("whole", "copy"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "one.py").write_text("a = 1\n")
        (tmp_path / folder / "test_one.py").write_text("def test_a(): ...\n")
    each = Break("name", "one.py", "a = 1", "a = 2", ("test_one.py::test_a",))
    each.apply(tmp_path / "copy")
    assert (tmp_path / "copy" / "one.py").read_text() == "a = 2\n"
    each.take_back(tmp_path / "copy", tmp_path / "whole")
    assert (tmp_path / "copy" / "one.py").read_text() == "a = 1\n"


def test_a_list_with_a_mistake_is_refused(tmp_path: Path) -> None:
    one = '[[break]]\nname = "a"\nfile = "f"\nold = "o"\nnew = "n"\n'
    for text, said in ((one + 'tests = ["t"]\n') * 2, "given twice: a"), (one + "tests = []\n", "a break has"):
        (tmp_path / "list.toml").write_text(text)
        with pytest.raises(BreakError, match=said):
            load_breaks(tmp_path)
