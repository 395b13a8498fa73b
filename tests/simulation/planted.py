"""Twenty-six mistakes planted in the product, each of which the simulation has to find.

A mistake is a text of one function and what stands in its place; the function is compiled anew in its own module.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import multiprocessing
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.simulation.works import simulate

WITHIN = 700
"""Seeds by which every mistake must have been found."""


@dataclass(frozen=True)
class Mistake:
    """``function`` of ``module`` (a method with its class) says ``new`` where ``old`` stands, once."""

    name: str
    module: str
    function: str
    old: str
    new: str


COORDINATOR, STORE, PLANT = "services.coordinator", "services.round_store", "services.site_agent"
MISTAKES = tuple(Mistake(*each) for each in (
    ("a resumed run counts its last round twice", f"{COORDINATOR}.round_loop.run_parts", "RunParts.committed",
     "number=saved[0]", "number=saved[0] - 1"),
    ("a commit is not whole: every other state is left out", f"{STORE}.runs.run_rounds", "RoundRepository.commit_round",
     "run_states.replace_state(", "record.round % 2 and run_states.replace_state("),
    ("a lease is never prolonged", "flows.lease", "_keep", "done.wait(seconds / 4)", "done.wait(seconds * 400)"),
    ("an answer counts although its key was taken away", f"{COORDINATOR}.asking.poll", "poll",
     "held = keys if live is None else live", "held = keys"),
    ("an old answer that comes again is let in", f"{COORDINATOR}.asking.admission", "_check_address",
     "if found != wanted:", 'if found != wanted and name == "site":'),
    ("a changed frame is let in", f"{COORDINATOR}.asking.admission", "admit",
     "if not parsed.is_signed_by(expected.public_key):", "if False:"),
    ("a sum names plants that did not answer", f"{COORDINATOR}.round_loop.cohort_sums", "CohortSums.gather",
     "== len(self._cohorts[name]), asked.answered)", "== len(self._cohorts[name]), tuple(self._cohorts[name]))"),
    ("a line of the ledger is not forced to the disk", f"{PLANT}.outgoing.ledger", "Ledger._write",
     "os.fsync(self._file)", "pass"),
    ("a refusal leaves without a line in the ledger", f"{PLANT}.outgoing.egress", "Egress.release",
     "self._ledger.append(", 'message.type == "refusal" or self._ledger.append('),
    ("a torn line stays in the ledger", f"{PLANT}.outgoing.ledger", "Ledger._open",
     "if reading.unfinished_bytes:", "if False:"),
    ("a link of the audit trail is skipped", f"{STORE}.operation.audit", "AuditRepository.append",
     "hash=event.hash)", "hash=head.hash)"),
    ("a promotion is not recorded: two champions", "flows.publish", "promote_if_gates_hold",
     "unit.model_versions.record_alias(", "(lambda *moved: None)("),
    ("the deadline of an answer never comes", f"{COORDINATOR}.asking.nats_transport", "NatsTransport._ask_one",
     "(left := deadline - time.monotonic())", "(left := 1e6)"),
    ("a run waits for ever for enough sites", f"{COORDINATOR}.round_loop.run_parts", "RunParts.until_enough",
     "if final or time.monotonic() >= deadline:", "if False:"),
    ("a cancelled run goes on and completes", f"{COORDINATOR}.round_loop.run_parts", "RunParts.check_cancelled",
     "if self.store.is_cancelled(run.run_id):", "if False:"),
    ("the answers of a round are taken twice", f"{COORDINATOR}.round_loop.rounds", "Rounds._round_on_answers",
     "at = at.stepped(answers)", "at = at.stepped(answers).stepped(answers)"),
    ("a run fails for a store that was locked for a moment", "flows.endings", "is_passing",
     "isinstance(error, UnavailableError)", "False"),
    ("a version that its run recorded before a crash ends the run", f"{STORE}.runs.model_versions",
     "ModelVersionRepository.add", "if known.run_id == run_id:", "if False:"),
    ("a run that is evaluated asks its plants once more", "flows.retrain", "drive", "if draft is None:", "if True:"),
    ("a run's draft is not committed", f"{STORE}.runs.runs", "RunRepository.keep_draft",
     "if known is None:", "if False:"),
    ("a clock that is put back keeps a dead process's lease", f"{STORE}.runs.run_leases", "_end_of_leases",
     "timedelta(seconds=2 * seconds)", "timedelta(days=3650)"),
    ("a key that was changed holds for ever", "services.contracts.history.site", "Site.former_keys_at",
     "if now < each.until", ""),
    ("a cut of an earlier run is kept of a plant whose rows changed", f"{COORDINATOR}.run_state.warm_start",
     "_said_the_same", "digests.get(site) == then.get(site)", "bool(then.get(site))"),
    ("a late answer counts in every round after it came", f"{COORDINATOR}.asking.open_questions", "OpenQuestions.taken",
     "del self._open[site]", "pass"),
    ("a late answer is taken for one to the last question", "models.cuts.late", "with_late_answers",
     "asked_in.get(site, number)", "number"),
    ("a late answer counts although its key was taken away", f"{COORDINATOR}.round_loop.late_rounds",
     "LateRounds._admit", 'self._parts.keys.get(site, "")',
     'self.__dict__.setdefault("_first", dict(self._parts.keys)).get(site, "")'),
))


@contextlib.contextmanager
def planted(name: str) -> Iterator[None]:
    """The product with a mistake in it; with none where the name is empty."""
    if not name:
        yield
        return
    mistake = next(each for each in MISTAKES if each.name == name)
    module = importlib.import_module(mistake.module)
    owner_name, _, own = mistake.function.rpartition(".")
    owner = getattr(module, owner_name) if owner_name else module
    sound = inspect.getattr_static(owner, own)
    false = _compiled(mistake, sound, module)
    places = [(owner, own)] if owner_name else _holders(sound)
    for place, held in places:
        setattr(place, held, false)
    try:
        yield
    finally:
        for place, held in places:
            setattr(place, held, sound)


def _compiled(mistake: Mistake, sound: Any, module: Any) -> Any:
    text = textwrap.dedent(inspect.getsource(sound))
    if text.count(mistake.old) != 1:
        raise ValueError(f"{mistake.name}: {mistake.old!r} stands {text.count(mistake.old)} times, not once")
    made: dict[str, Any] = {}
    text = "from __future__ import annotations\n" + text.replace(mistake.old, mistake.new)
    exec(compile(text, mistake.name, "exec"), vars(module), made)
    return made[mistake.function.rpartition(".")[2]]


def _holders(sound: Any) -> list[tuple[Any, str]]:
    """Every module of the product that has a function under some name."""
    return [
        (module, name)
        for module_name, module in list(sys.modules.items())
        if module_name.partition(".")[0] in ("services", "flows", "models")
        for name, value in list(vars(module).items())
        if value is sound
    ]


def found_by(name: str, within: int = WITHIN) -> tuple[int, str] | None:
    """The first seed that finds a mistake, and what it says; None where none does."""
    with planted(name):
        for seed in range(within):
            if broken := simulate(seed).broken:
                return seed, broken[0]
    return None


def report(name: str, jobs: int) -> int:
    """Plant one mistake or all, and say by which seeds they are found; 1 where one is not."""
    names = [each.name for each in MISTAKES if name in ("all", each.name)]
    if not names:
        print("there is no such mistake; there are:\n  " + "\n  ".join(each.name for each in MISTAKES))
        return 2
    with multiprocessing.get_context("fork").Pool(max(jobs, 1), maxtasksperchild=1) as pool:
        found = 0
        for each, result in zip(names, pool.imap(found_by, names), strict=True):
            found += result is not None
            print(f"{each}: " + ("NOT FOUND" if result is None else f"seed {result[0]}: {result[1]}"), flush=True)
    print(f"{found} of {len(names)} planted mistakes found")
    return 0 if found == len(names) else 1
