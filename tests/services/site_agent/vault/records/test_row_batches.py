"""A plant whose rows come and go by groups: what its runs see, what it remembers, and what counts tell then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.site_agent.door.local_round import LocalRound
from services.site_agent.vault.dataset import Dataset
from services.site_agent.vault.errors import VaultError
from services.site_agent.vault.reader import Vault
from services.site_agent.vault.records.row_batches import RowBatches

SECRET = b"of the vault"
WEIGHTS = {"weights": np.array([[4.0, 2.0, 0.0, -3.5]])}


@pytest.fixture
def grown(make_site: Callable[..., Any], make_table: Any, write_csv: Any) -> Callable[[Any], Any]:
    """A site of a hundred rows at least, by how many rows of a longer table it has, after an agent's restart."""
    site = make_site(make_table(100), test_fraction=0.3)
    rows = make_table(200)

    def with_rows(chosen: Any, least: int = 5) -> Any:
        write_csv([rows[0], *(rows[1 + row] for row in chosen)], "site/data.csv")
        return site.restarted(policy=site.policy.model_copy(update={"min_new_rows": least}))

    return with_rows


def seen(site: Any, run: str = "b" * 32) -> Dataset:
    door: LocalRound = site.door
    return door._vault.dataset(run)


def readings(part: Any) -> set[bytes]:
    return {row.tobytes() for row in part.features}


def differences(first: Dataset, second: Dataset) -> list[int]:
    """How many rows of each part came, and went."""
    pairs = [(readings(getattr(first, part)), readings(getattr(second, part))) for part in ("train", "test")]
    return [len(one - other) for pair in pairs for one, other in (pair, pair[::-1])]


def test_what_runs_see_differs_by_as_many_rows_or_by_none(grown: Any) -> None:
    versions, sizes = [], []
    for count in (100, 101, 103, 110, 111, 140, 141, 200):
        versions.append(seen(grown(range(count))))
        sizes.append(len(versions[-1].train) + len(versions[-1].test))
    for now in (range(1, 200), range(3, 197), [*range(50), *range(60, 200)], range(200)):
        versions.append(seen(grown(now)))
    for first in versions:
        for second in versions:
            assert all(count == 0 or count >= 5 for count in differences(first, second))
    assert sizes[0] == sizes[1] == sizes[2] == 100 and sizes == sorted(sizes) and sizes[-1] >= 190
    assert readings(versions[-1].train) | readings(versions[-1].test) >= readings(versions[7].train), "all are back"


def test_who_was_held_out_is_never_learnt_from(grown: Any) -> None:
    held, learnt = set[bytes](), set[bytes]()
    for count in (100, 120, 150, 170, 200):
        found = seen(grown(range(count)))
        held |= readings(found.test)
        learnt |= readings(found.train)
    assert not held & learnt and 40 <= len(held) <= 70


def test_by_itself_each_row_counts_from_the_next_run_on(grown: Any) -> None:
    site = grown(range(100), least=1)
    assert seen(site) is site.door._vault.current()
    assert len(seen(grown(range(101), least=1)).train) + len(seen(grown(range(101), least=1)).test) == 101


def test_counts_before_and_after_one_row_are_the_same(grown: Any, make_table: Any) -> None:
    def told(count: int, least: int, run: str) -> Any:
        return grown(range(count), least).ask("evaluate", arrays=WEIGHTS, run_id=run * 32).arrays["confusion"]

    for count in range(101, 106):
        assert np.array_equal(told(100, 5, "c"), told(count, 5, "d"))
    assert any(not np.array_equal(told(100, 1, "c"), told(count, 1, "d")) for count in range(101, 106))


def test_copies_of_a_row_are_rows_each(grown: Any, make_table: Any) -> None:
    assert len(seen(grown([*range(100), 3, 3])).train) + len(seen(grown([*range(100), 3, 3])).test) == 102
    fewer = seen(grown([*range(100), 3]))
    assert len(fewer.train) + len(fewer.test) == 97, "with the copy that is gone four others are left out"


def test_another_label_is_another_row(make_site: Any, make_table: Any, write_csv: Any) -> None:
    rows = make_table(100)
    site = make_site(rows)
    batches, first = RowBatches(None, SECRET, 5), Vault(site.source, site.asset_type).current()
    batches.seen(first)
    at = next(number for number, row in enumerate(rows) if row[-1] == "healthy")
    write_csv([*rows[:at], [*rows[at][:-1], "leak"], *rows[at + 1 :]], "site/data.csv")
    second = batches.seen(Vault(site.source, site.asset_type).current())
    assert len(second.train) + len(second.test) == 95, "it waits, and four others are left out with what it was"
    batches.close()


def test_it_is_remembered_without_the_rows(grown: Any, tmp_path: Path) -> None:
    site = grown(range(100))
    seen(site)
    lines = site.door._batches.read("SELECT row, number, held_out FROM row_group", ())
    assert len(lines) == 100 and {held for _, _, held in lines} == {0, 1}
    kept = (site.folder / "exposure.sqlite").read_bytes()
    assert not any(row.tobytes() in kept for row in seen(site).train.features)
    other = RowBatches(None, b"another secret", 5)
    other.seen(site.door._vault.current())
    assert not {row for row, _, _ in lines} & {row for row, _, _ in other.read("SELECT * FROM row_group", ())}
    other.close()


def test_a_source_that_says_the_parts_is_taken_at_its_word(make_site: Any, make_table: Any) -> None:
    rows = make_table(60)
    rows = [[*rows[0], "part"], *([*row, "test" if at % 3 == 0 else "train"] for at, row in enumerate(rows[1:]))]
    site = make_site(rows, split_column="part")
    batches, whole = RowBatches(None, SECRET, 5), Vault(site.source, site.asset_type).current()
    first = batches.seen(whole)
    assert differences(first, whole) == [0, 0, 0, 0] and not whole.by_hash
    moved = Dataset(whole.train.followed_by(whole.test.chosen(np.arange(20) < 1)), whole.test.chosen(np.arange(20) > 0),
                    {}, ())
    found = differences(first, batches.seen(moved))
    assert found == [0, 0, 5, 0], "a row that moves is gone from its part, and waits in the other"
    batches.close()


def test_rows_that_are_too_few_at_first_are_a_refusal(make_site: Any, make_table: Any) -> None:
    site = make_site(make_table(40))
    batches = RowBatches(None, SECRET, 50)
    with pytest.raises(VaultError, match="no 50 rows have come together yet"):
        batches.seen(Vault(site.source, site.asset_type).current())
    batches.close()
