"""A file that was changed, replaced or taken away has another stamp, however alike it looks."""

from __future__ import annotations

import os
from pathlib import Path

from services.site_agent.file_stamp import file_stamp


def test_each_state_of_a_file_has_its_stamp(tmp_path: Path) -> None:
    file, other = tmp_path / "rows.csv", tmp_path / "new.csv"
    assert file_stamp(file) is None
    file.write_text("1,2\n")
    os.utime(file, ns=(5 * 10**9, 5 * 10**9))
    seen = [file_stamp(file)]
    assert file_stamp(file) == seen[0] is not None

    def changed() -> None:
        seen.append(file_stamp(file))
        assert len(set(seen)) == len(seen)

    os.utime(file, ns=(5 * 10**9, 5 * 10**9 + 1))  # within the same second
    changed()
    file.write_text("1,2,3\n")
    os.utime(file, ns=(5 * 10**9, 5 * 10**9))  # at the same moment
    changed()
    other.write_text("4,5\n")
    os.utime(other, ns=(5 * 10**9, 5 * 10**9))
    other.replace(file)  # of the same size and moment as the first
    changed()
    file.unlink()
    changed()
