from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.registry import history

VERSIONS = st.sampled_from(["1", "2", "3", "4"])


def test_tag_of_a_line_reads_back_and_forgets_the_oldest() -> None:
    assert history.parse(history.render(("1", "3", "2"))) == ("1", "3", "2")
    assert history.parse(None) == history.parse("") == ()
    long = tuple(str(number) for number in range(history.LONGEST + 5))
    assert history.parse(history.render(long)) == long[5:]


def test_rollback_steps_over_deleted_versions_and_over_the_champion_itself() -> None:
    line = ("1", "2", "3", "2")
    assert history.rolled_back(line, frozenset("123")) == ("1", "2", "3")
    assert history.rolled_back(line, frozenset("12")) == ("1",)
    assert history.rolled_back(("1",), frozenset("1")) == ()
    assert history.rolled_back((), frozenset()) == ()
    assert history.previous(line, frozenset("123")) == "3" and history.previous(line, frozenset("12")) == "1"
    assert history.previous(("1", "2"), frozenset("2")) is None and history.previous((), frozenset()) is None


@given(st.lists(VERSIONS, min_size=1, max_size=12))
def test_rolling_back_walks_the_promotions_backwards(promotions: list[str]) -> None:
    line: tuple[str, ...] = ()
    for version in promotions:
        line = history.promoted(line, version)
    distinct = [v for i, v in enumerate(promotions) if i == 0 or promotions[i - 1] != v]
    for expected in reversed(distinct[:-1]):
        line = history.rolled_back(line, frozenset("1234"))
        assert line[-1] == expected
    assert history.rolled_back(line, frozenset("1234")) == ()


@given(st.lists(VERSIONS, max_size=8), VERSIONS, VERSIONS)
def test_a_death_between_the_two_writes_of_a_promotion_leaves_the_line_as_it_was(
    before: list[str], champion: str, new: str
) -> None:
    line = history.line_up_to(tuple(before), champion)
    assert line[-1] == champion
    if new != champion:
        written = history.promoted(line, new)
        healed = history.line_up_to(written, champion)
        assert healed[-1] == champion and healed == line[: len(healed)]


def test_a_champion_that_was_champion_before_keeps_the_way_back() -> None:
    """Promoted, taken back by another, promoted again: a rollback goes to the one in between."""
    line = history.line_up_to(("1", "2", "1", "3"), "1")
    assert line == ("1", "2", "1")
    assert history.previous(line, frozenset("123")) == "2"
