"""What `make check` runs: the tests that mirror a change."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.changed import ALWAYS, mirrored_tests


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("services/registry/gates.py", "tests/services/registry/test_gates.py"),
        ("services/registry/labels.py", "tests/services/registry"),
        ("services/registry/deep/new.py", "tests/services/registry"),
        ("tests/services/registry/test_gates.py", "tests/services/registry/test_gates.py"),
        ("tests/services/registry/conftest.py", "tests/services/registry"),
        ("README.md", None),
        ("elsewhere/new.py", None),
    ],
)
def test_the_tests_of_a_change_are_its_mirror(tmp_path: Path, changed: str, expected: str | None) -> None:
    folder = tmp_path / "tests" / "services" / "registry"
    folder.mkdir(parents=True)
    (folder / "test_gates.py").write_text("")
    assert mirrored_tests([changed], tmp_path) == sorted({*ALWAYS, *([expected] if expected else [])})
