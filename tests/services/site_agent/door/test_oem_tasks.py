"""A task is the OEM's by its key, by one that follows from it, and by nobody else's word."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from services.contracts.errors import BallastError
from services.contracts.keys.key_chain import FILE, KeyStatement, state_change, write_statements
from services.contracts.keys.signing import new_seed_file, public_key
from services.contracts.wire.task_signature import LINE, LONGEST_LINE, SIGNATURE
from services.coordinator.asking.task_signer import TaskSigner
from services.site_agent.door.oem_tasks import GRACE, OemTasks
from services.site_agent.rules.policy import Refusal

TASK = b"BLS1 a task"
NOW = datetime.now(UTC)
HOUR = timedelta(hours=1)


class Oem:
    """The OEM's keys, each in a folder of its own with the line that led to it."""

    def __init__(self, folder: Path, name: str = "oem") -> None:
        self.folder, self.name, self.seeds = folder, name, list[Path]()
        self.line: tuple[KeyStatement, ...] = ()
        self.make()

    def make(self) -> Path:
        seed = self.folder / f"{self.name}-{len(self.seeds)}" / "coordinator.nk"
        new_seed_file(seed)
        self.seeds.append(seed)
        return seed

    def change(self, overlap: timedelta = HOUR, *, at: datetime = NOW, stolen: bool = False) -> None:
        former, following = self.seeds[-1], self.make()
        self.tell(state_change(former, following, at, at + overlap, [] if stolen else None))

    def tell(self, *statements: KeyStatement) -> None:
        self.line = (*self.line, *statements)
        self.seeds[-1].with_name(FILE).write_text(write_statements(self.line))

    def key(self, number: int) -> str:
        return public_key(self.seeds[number])

    def headers(self, number: int = -1, frame: bytes = TASK) -> dict[str, str]:
        return TaskSigner(self.seeds[number]).headers("plant-1", frame)

    def silent(self, number: int = -1) -> dict[str, str]:
        """Without a word of the line."""
        return {SIGNATURE: self.headers(number)[SIGNATURE]}


@pytest.fixture
def oem(tmp_path: Path) -> Oem:
    return Oem(tmp_path)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "plant" / "heard-keys.json"


def known(oem: Oem, kept: Path, number: int = 0) -> OemTasks:
    kept.parent.mkdir(exist_ok=True)
    return OemTasks(oem.key(number), kept)


def refused(tasks: OemTasks, headers: dict[str, str] | None, words: str, frame: bytes = TASK) -> None:
    with pytest.raises(Refusal, match=words) as said:
        tasks.check(frame, headers)
    assert said.value.refusal_code == "task_not_signed"
    assert said.value.reason.startswith("the task is not signed by the OEM's key")


def test_what_the_key_signed_is_a_task_and_nothing_else(oem: Oem, kept: Path, tmp_path: Path) -> None:
    tasks, stranger = known(oem, kept), Oem(tmp_path, "stranger")
    tasks.check(TASK, oem.headers())
    refused(tasks, oem.headers(), "by none of them", TASK + b" ")
    refused(tasks, stranger.headers(), f"the OEM's keys are {oem.key(0)}, and the task is signed by none of them")
    for nothing in (None, {}, {SIGNATURE: ""}, {SIGNATURE: "no base 64"}):
        refused(tasks, nothing, "signed not at all")
    assert not kept.exists()


def test_a_bare_signature_of_the_bytes_is_of_something_else(oem: Oem, kept: Path) -> None:
    """What the key signs of other things is no task, whoever gets hold of it."""
    from services.contracts.keys.signing import signer
    from services.contracts.wire.task_signature import written

    refused(known(oem, kept), {SIGNATURE: written(signer(oem.seeds[0])(TASK))}, "by none of them")


def test_a_key_that_follows_is_believed_by_the_line_and_remembered(oem: Oem, kept: Path) -> None:
    oem.change()
    tasks = known(oem, kept)
    refused(tasks, oem.silent(1), "by none of them")
    tasks.check(TASK, oem.headers(1))
    tasks.check(TASK, oem.silent(1))
    tasks.check(TASK, oem.silent(0))  # a run goes on by the key with which it began
    known(oem, kept).check(TASK, oem.silent(1))  # an agent that began anew


@pytest.mark.parametrize(
    ("ago", "holds"), [(GRACE - timedelta(minutes=1), True), (GRACE + timedelta(minutes=1), False)]
)
def test_a_former_key_holds_until_its_end(oem: Oem, kept: Path, ago: timedelta, holds: bool) -> None:
    oem.change(at=datetime.now(UTC) - HOUR - ago)
    tasks = known(oem, kept)
    tasks.check(TASK, oem.headers(1))
    if holds:
        tasks.check(TASK, oem.silent(0))
    else:
        refused(tasks, oem.silent(0), "by none of them")


def test_who_knows_a_later_key_believes_none_before_it(oem: Oem, kept: Path) -> None:
    oem.change()
    tasks = known(oem, kept, 1)
    tasks.check(TASK, oem.headers(1))
    refused(tasks, oem.silent(0), "by none of them")
    assert not kept.exists()


def test_who_holds_a_key_that_has_ended_gives_no_other_its_place(oem: Oem, kept: Path, tmp_path: Path) -> None:
    """Neither as its successor, where the true one was heard, nor as one before it, with an end of his own."""
    oem.change(at=NOW - 2 * HOUR)
    tasks, thief = known(oem, kept), Oem(tmp_path, "thief")
    tasks.check(TASK, oem.headers(1))
    for former, following in ((thief.seeds[0], oem.seeds[0]), (oem.seeds[0], thief.seeds[0])):
        thief.line = ()
        thief.tell(state_change(former, following, NOW, NOW + 1000 * HOUR))
        headers = {**thief.silent(), LINE: json.dumps([json.loads(each.model_dump_json()) for each in thief.line])}
        refused(tasks, headers, "by none of them")
    tasks.check(TASK, oem.silent(1))


def test_a_line_that_leads_in_a_circle_ends(oem: Oem, kept: Path) -> None:
    oem.change()
    oem.tell(state_change(oem.seeds[1], oem.seeds[0], NOW, NOW + HOUR))
    line = json.dumps([json.loads(each.model_dump_json()) for each in oem.line])
    known(oem, kept).check(TASK, {**oem.silent(0), LINE: line})


def test_a_stolen_key_is_believed_no_more_once_that_was_heard_nor_whom_its_thief_names(
    oem: Oem, kept: Path, tmp_path: Path
) -> None:
    tasks, thief = known(oem, kept), Oem(tmp_path, "thief")
    tasks.check(TASK, oem.headers(0))
    oem.change(stolen=True)
    tasks.check(TASK, oem.headers(1))
    thief.tell(state_change(oem.seeds[0], thief.seeds[0], NOW, NOW + HOUR))
    for _ in range(2):
        tasks.check(TASK, oem.silent(1))
        refused(tasks, oem.silent(0), "by none of them")
        refused(tasks, thief.headers(), "by none of them")
        tasks = known(oem, kept)
    refused(known(oem, kept, 1), oem.silent(0), "by none of them")


def test_a_change_that_was_heard_is_not_undone_by_another(oem: Oem, kept: Path, tmp_path: Path) -> None:
    """Who holds a former key names a successor of his own."""
    oem.change(-HOUR)
    tasks, thief = known(oem, kept), Oem(tmp_path, "thief")
    tasks.check(TASK, oem.headers(1))
    thief.tell(state_change(oem.seeds[0], thief.seeds[0], NOW, NOW + HOUR))
    before = kept.read_text()
    refused(tasks, thief.headers(), "by none of them")
    tasks.check(TASK, oem.headers(1))
    assert kept.read_text() == before


def test_lines_that_lead_nowhere_are_not_kept(oem: Oem, kept: Path, tmp_path: Path) -> None:
    stranger = Oem(tmp_path, "stranger")
    stranger.change()
    tasks = known(oem, kept)
    for line in (stranger.headers()[LINE], "no list", "[]", "[{}]"):
        tasks.check(TASK, {**oem.silent(), LINE: line})
        assert not kept.exists()


def test_a_file_of_others_keys_makes_nobody_the_oem(oem: Oem, kept: Path, tmp_path: Path) -> None:
    stranger = Oem(tmp_path, "stranger")
    stranger.change()
    kept.parent.mkdir()
    kept.write_text(write_statements(stranger.line))
    refused(known(oem, kept), stranger.silent(), "by none of them")


def test_a_line_of_many_keys_is_followed_to_its_end(oem: Oem, kept: Path) -> None:
    for _ in range(5):
        oem.change()
    tasks = known(oem, kept, 2)
    tasks.check(TASK, oem.headers())
    for number in range(2, 6):
        tasks.check(TASK, oem.silent(number))
    for number in range(2):
        refused(tasks, oem.silent(number), "by none of them")


def test_what_cannot_be_kept_holds_until_the_agent_ends(oem: Oem, tmp_path: Path) -> None:
    oem.change()
    tasks = OemTasks(oem.key(0), tmp_path / "no folder" / "heard-keys.json")
    tasks.check(TASK, oem.headers(1))
    tasks.check(TASK, oem.silent(1))


def test_an_agent_does_not_begin_without_the_changes_that_it_kept(oem: Oem, kept: Path) -> None:
    kept.parent.mkdir()
    kept.write_text("{")
    with pytest.raises(BallastError, match="does not hold what was heard of the OEM's keys: put it back"):
        known(oem, kept)


def test_a_site_is_told_the_line_until_it_has_answered(oem: Oem) -> None:
    oem.change()
    signer = TaskSigner(oem.seeds[1])
    assert LINE in signer.headers("plant-1", TASK) and LINE in signer.headers("plant-1", TASK)
    signer.answered("plant-1")
    assert LINE not in signer.headers("plant-1", TASK) and LINE in signer.headers("plant-2", TASK)
    assert LINE not in TaskSigner(oem.seeds[0]).headers("plant-1", TASK)


def test_a_change_that_was_never_finished_is_not_told(oem: Oem) -> None:
    """Its statement stands in the file, and the key is the former one still."""
    oem.change()
    oem.change()
    (oem.seeds[1].with_name(FILE)).write_text(write_statements(oem.line))
    assert "".join(oem.headers(1)[LINE].split()).count('"former":') == 1


def statements(oem: Oem, count: int, each: Sequence[str]) -> None:
    for _ in range(count):
        former, following = oem.seeds[-1], oem.make()
        oem.tell(state_change(former, following, NOW, NOW, each))


def test_of_a_line_that_is_too_long_what_follows_a_stolen_key_is_told(oem: Oem, kept: Path) -> None:
    statements(oem, 1, [f"{k:064d}" for k in range(LONGEST_LINE // 64)])
    assert LINE not in oem.headers()
    oem.change()
    assert 0 < len(oem.headers()[LINE]) < 2000
    tasks = known(oem, kept, 1)
    tasks.check(TASK, oem.headers())
    tasks.check(TASK, {**oem.silent(), LINE: (LONGEST_LINE + 1) * " "})
