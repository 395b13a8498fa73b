"""The server's own work of a round: ``python -m tests.benchmarks.server_step [--json FILE] [--only SITES]``.

Drawn plants answer for real (their time is not counted); ``step_ms`` is the median processor time of the last five
steps of the method on one BLAS thread, ``until_ms`` that of all steps until a gap of 1e-4, where a plan's run may end
(of all where none came so far), ``memory_mb`` what the state holds and a step takes at its peak, ``commit_ms`` the
median of the last five commits to a SQLite file (or ``--database URL``), with the frames of each plant where the plan
shows them. A row without ``step_ms`` is of cuts that are drawn, for the storage alone; ``stored_mb`` is then what
stands there after.
"""

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"  # before numpy loads its BLAS

import argparse  # noqa: E402 - the lines above must come first
import json  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
import tracemalloc  # noqa: E402
from collections.abc import Mapping, Sequence  # noqa: E402
from datetime import UTC, datetime  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
from sqlalchemy import text  # noqa: E402

from migrations.run import upgrade  # noqa: E402
from models.basics import Arrays, FloatArray  # noqa: E402
from models.methods.catalogue import check_parameters, get_method  # noqa: E402
from models.one_vs_rest import OneVsRestServer  # noqa: E402
from models.problem import RobustSpec, ServerProblem, SiteProblem, SiteTerms  # noqa: E402
from services.contracts.history.run import Exchange, RoundRecord, SiteAnswer, SiteTermsRecord  # noqa: E402
from services.contracts.plans.plan import Plan  # noqa: E402
from services.round_store.store import RoundStore  # noqa: E402
from tests.benchmarks.command import in_words, output_file  # noqa: E402

METHOD, LAST, ENOUGH = "level-bundle", 5, 1e-4
CASES = ((4, 30, 25, 100, True), (200, 50, 25, 40, True), (50, 500, 25, 200, False))
"""Sites, features, rounds, rows of a site, whether its frames are kept; the last is 1,000 plants in 50 cohorts."""
STORED = (200, 500, 40)


def drawn_sites(count: int, features: int, rows: int, seed: int = 3) -> dict[str, SiteProblem]:
    """Plants whose two classes overlap, each with a shift of its own."""
    random = np.random.default_rng(seed)
    apart = random.normal(size=features) / np.sqrt(features)
    sites = {}
    for g in range(count):
        labels = np.where(random.random(rows) < 0.5, 1.0, -1.0)
        centre = 0.3 * random.normal(size=features) / np.sqrt(features)
        table = labels[:, None] * apart + centre + random.normal(size=(rows, features)) / np.sqrt(features)
        sites[f"site-{g:04d}"] = SiteProblem(table, labels, RobustSpec(1.0 / (10 * rows), 1.0))
    return sites


def problem_of(sites: Sequence[str], features: int, radius: float) -> ServerProblem:
    """What the server knows."""
    terms = tuple(SiteTerms(name, 1.0 / len(sites), radius, 1.0) for name in sites)
    parameters = check_parameters(get_method(METHOD), {})
    return ServerProblem(features, terms, "l2", True, gap=1e-9, parameters=parameters)


class Storage:
    """Commits of one run, timed."""

    def __init__(self, url: str, sites: Sequence[str], framed: bool) -> None:
        upgrade(url)
        self.store, self.sites, self.framed, self.times = RoundStore.open(url), sites, framed, list[float]()
        run = self.store.runs.create_run(Plan(name=f"p{time.time_ns()}", asset_type="rig", reveal="each site"))
        terms = [SiteTermsRecord(site_id=name, weight=1 / len(sites), radius=0.0, n_samples=1) for name in sites]
        self.run_id = self.store.runs.begin_run(run.run_id, terms).run_id

    def commit(self, server: OneVsRestServer, before: Any, state: Any, message: Arrays, answer: Arrays) -> None:
        """Commit the next round."""
        frame = b"\0" * 400
        sent = frame + b"".join(np.asarray(each).tobytes() for each in message.values())
        came = frame + b"".join(np.asarray(each).tobytes() for each in answer.values())
        exchanges: Mapping[str, Exchange] = dict.fromkeys(self.sites, (sent, came)) if self.framed else {}
        record = RoundRecord(
            run_id=self.run_id, round=len(self.times) + 1, started_at=datetime.now(UTC), seconds=0.0,
            overhead_seconds=0.0, upper=1.0, lower=0.0, gap=1.0, fresh_weight=1.0,
            answers=tuple(
                SiteAnswer(site_id=name, status="accepted", bytes_in=len(came), bytes_out=len(sent), seconds=0.1,
                           payload_sha256="0" * 64)
                for name in self.sites
            ),
        )
        started = time.perf_counter()
        change = server.pack_change(before if self.times else None, state)
        self.store.runs.commit_round(record, change.present, exchanges, None, change.added)
        self.times.append(time.perf_counter() - started)

    def stored_mb(self, folder: Path) -> float:
        """Size of what stands there."""
        if self.store.engine.dialect.name == "postgresql":
            with self.store.engine.connect() as connection:
                return float(connection.scalar(text("SELECT pg_database_size(current_database())")) or 0) / 1e6
        return sum(file.stat().st_size for file in folder.iterdir()) / 1e6


def measure(sites: int, features: int, rounds: int, rows: int, framed: bool, url: str, folder: Path) -> dict[str, Any]:
    """Steps and commits of one run."""
    problems = drawn_sites(sites, features, rows)
    method, problem = get_method(METHOD), problem_of(list(problems), features, 1.0 / (10 * rows))
    server = OneVsRestServer(method.server, 1)
    storage, times, state = Storage(url, list(problems), framed), list[float](), server.init(problem)
    until = rounds  # steps until a gap of 1e-4
    for number in range(rounds):
        messages, before = server.messages(state, problem), state
        answers = {name: _answer(method, problems[name], message, problem) for name, message in messages.items()}
        if number == rounds - 1:
            tracemalloc.start()
        started = time.process_time()
        state = server.step(state, problem, answers)
        if number < rounds - 1:
            times.append(time.process_time() - started)
        else:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        until = min(until, number + 1) if server.certificate(state).gap <= ENOUGH else until
        storage.commit(server, before, state, next(iter(messages.values())), next(iter(answers.values())))
    held = sum(array.nbytes for array in server.pack(state).values())
    return {
        "sites": sites, "features": features, "rounds": rounds, "method": METHOD,
        "step_ms": 1e3 * float(np.median(times[-LAST:])), "until_ms": 1e3 * float(np.median(times[:until])),
        "memory_mb": (peak + held) / 1e6,
        "commit_ms": 1e3 * float(np.median(storage.times[-LAST:])), "gap": server.certificate(state).gap,
        "stored_mb": storage.stored_mb(folder),
    }


def measure_storage(sites: int, features: int, rounds: int, url: str, folder: Path) -> dict[str, Any]:
    """Commits of a run whose cuts are drawn."""
    from models.cuts.evidence import with_answers
    from models.methods.bundle.level import BundleState

    random, names = np.random.default_rng(4), [f"site-{g:04d}" for g in range(sites)]
    problem, server = problem_of(names, features, 0.01), OneVsRestServer(get_method(METHOD).server, 1)
    storage, state = Storage(url, names, True), server.init(problem)
    number, slope = np.array(0.5), np.zeros(problem.dimension)
    for _ in range(rounds):
        answer = {"risk": number, "cut_height": number, "slope": slope, "norm_weight": number,
                  "minorant_offset": number, "minorant_norm_weight": number, "minorant_slope": slope}
        answers = {name: answer | {"slope": random.normal(size=slope.size)} for name in names}
        before, head = state, state[0]
        evidence = with_answers(head.evidence, problem, random.normal(size=slope.size), answers)
        state = (BundleState(evidence, slope, random.normal(size=head.centre.shape), head.penalty),)
        storage.commit(server, before, state, server.messages(before, problem)[names[0]], answers[names[0]])
    return {
        "sites": sites, "features": features, "rounds": rounds, "method": METHOD, "step_ms": None, "until_ms": None,
        "memory_mb": None,
        "commit_ms": 1e3 * float(np.median(storage.times[-LAST:])), "gap": None, "stored_mb": storage.stored_mb(folder),
    }


def _answer(method: Any, site: SiteProblem, message: Arrays, problem: ServerProblem) -> dict[str, FloatArray]:
    single = method.site.answer(site, {name: array[0] for name, array in message.items()}, problem.parameters)
    return {name: np.asarray(array)[None] for name, array in single.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table; write the rows where asked."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--json", type=output_file, metavar="FILE", help="write the rows there")
    only = (0, *(case[0] for case in CASES))
    parser.add_argument("--only", type=int, choices=only, help="the case with so many sites alone; 0: storage")
    parser.add_argument("--database", metavar="URL", help="commit there in place of a SQLite file")
    options = parser.parse_args(arguments)
    columns = ("sites", "features", "rounds", "step_ms", "until_ms", "memory_mb", "commit_ms", "stored_mb", "gap")
    rows = []
    print("".join(f"{name:>11}" for name in columns), flush=True)
    for case in (*CASES, None):
        if options.only is not None and options.only != (0 if case is None else case[0]):
            continue
        with tempfile.TemporaryDirectory() as name:
            url = options.database or f"sqlite:///{name}/ballast.db"
            found = measure_storage(*STORED, url, Path(name)) if case is None else measure(*case, url, Path(name))
        rows.append(found)
        cells = ("-" if found[name] is None else format(found[name], ".4g") for name in columns)
        print("".join(f"{cell:>11}" for cell in cells), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(in_words(main))
