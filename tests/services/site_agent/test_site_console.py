"""The plant's own page, over real HTTP, on a site that answered real tasks: it tells what is so, to its owner alone."""

from __future__ import annotations

import http.client
import itertools
import json
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlsplit

import numpy as np
import pytest

from services.contracts.messages import Kind, Reveal
from services.site_agent.cli import main
from services.site_agent.console import pages, policy_words
from services.site_agent.console.ledger_view import PAGE, LedgerView, line
from services.site_agent.console.server import DOCUMENTS, HEADERS, OPEN, PAGES, SiteConsole
from services.site_agent.console.site_state import SiteState, attention
from services.site_agent.health import note
from services.site_agent.ledger_check import entry_hash, read_ledger, verify
from services.site_agent.policy import SitePolicy, default_policy_text
from services.site_agent.settings import SiteSettings
from tests.services.site_agent.conftest import RUN, TWO_CLASSES, table

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&"


@dataclass
class Reader:
    """Somebody with a browser: what is asked, and the cookie that was set."""

    console: SiteConsole
    cookie: str = ""

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.console.server_port, timeout=10)
        try:
            connection.request(method, path, headers={"Cookie": self.cookie} | headers if self.cookie else headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode()
        finally:
            connection.close()

    def enter(self) -> Reader:
        address = urlsplit(self.console.first_address)
        status, headers, _ = self.ask(f"{address.path}?{address.query}")
        assert (status, headers["Location"]) == (303, "/")
        self.cookie = headers["Set-Cookie"].split(";")[0]
        return self

    def text(self, path: str) -> str:
        """Words of a page that is there, without its markup, one blank between them."""
        status, _, content = self.ask(path)
        assert status == 200, content
        return " ".join(re.sub(r"<[^>]+>", " ", content).split())

    def json(self, path: str) -> Any:
        status, headers, content = self.ask(path)
        assert (status, headers["Content-Type"]) == (200, "application/json; charset=utf-8")
        return json.loads(content)


@pytest.fixture
def look() -> Iterator[Callable[..., Reader]]:
    """Serve the page of a folder's settings on a free port."""
    running = []

    def serve(settings: SiteSettings) -> Reader:
        console = SiteConsole(settings, 0)
        thread = threading.Thread(target=console.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        running.append((console, thread))
        return Reader(console)

    yield serve
    for console, thread in running:
        console.shutdown()
        console.server_close()
        thread.join(10)


def settings_of(folder: Path, **policy: Any) -> SiteSettings:
    """Settings of a site's folder, with the files that ``init`` writes."""
    folder.mkdir(exist_ok=True)
    (folder / "asset_type.toml").write_text(TWO_CLASSES)
    text = default_policy_text(("pump",), ("level-bundle", "fdr-admm"), **policy)
    (folder / "policy.toml").write_text(text)
    (folder / "site.toml").write_text(
        'site_id = "plant-1"\nservers = ["tls://oem.example:4222"]\n[data]\nkind = "csv"\npath = "data.csv"\n'
    )
    return SiteSettings.from_toml(folder / "site.toml")


def answer(site: Any, run: str, number: int, weights: np.ndarray) -> Any:
    """A round of a run, asked at weights (P + 1,)."""
    at = weights[np.newaxis]
    return site.ask("round", run_id=run, round=number, arrays={"point": at, "centre": at, "penalty": np.ones(1)})


@pytest.fixture
def answered(make_site: Callable[..., Any]) -> Any:
    """A site that took part in two runs, refused a task and is connected."""
    site = make_site()
    for run in (RUN, "b" * 32):
        assert site.ask(run_id=run, round=0).type == "update"
        for number, weights in enumerate(np.eye(4)[:3], start=1):
            assert answer(site, run, number, weights).type == "update"
    assert site.refusal_code(method="fedavg") == "method_not_allowed"
    note(settings_of(site.folder)).touch()
    return site


@pytest.fixture
def seen(answered: Any, look: Callable[..., Reader]) -> Reader:
    return look(settings_of(answered.folder)).enter()


def content_of(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def test_every_page_shows_its_figures_and_writes_nothing(answered: Any, seen: Reader) -> None:
    before = content_of(answered.folder)
    entries = verify(answered.folder / "ledger.jsonl")
    size, rows = sum(entry["bytes"] for entry in entries), entries[-2]["exposure"]["rows"]
    first = seen.text("/")
    assert "plant-1" in first and "Nothing needs attention" not in first and "Tasks were refused" in first
    assert re.search(r"Agent connected seen \d+ s ago; no hello yet", first)
    assert "Runs taken part in 2" in first and "Ledger sound 9 entries" in first
    assert f"Rows exposed 0 of {rows}; 0 allowed" in first and "Drift 0.00 no more than chance" in first
    assert f"{size / 1e3:.3g} kB" in first and "9 messages since midnight UTC" in first
    ledger = seen.text("/ledger")
    assert "Sound 9 entries" in ledger and "refused refusal join method_not_allowed" in ledger
    newest, oldest = ledger.index("refusal join"), ledger.rindex("update join")
    assert newest < ledger.index("update round") < oldest
    for field, shape in entries[2]["shapes"].items():
        assert f"{field}({', '.join(map(str, shape))})".removesuffix("()") in ledger
    assert f"{entries[2]['bytes']} " in ledger and RUN[:8] in ledger and f" 0 of {rows} " in ledger
    exposure = seen.text("/exposure")
    assert f"0 of {rows} rows can be read off exactly" in exposure and "Answers 8 in 2 runs" in exposure
    assert "the policy allows 0" in exposure and "Runs left today 48" in exposure
    drift = seen.text("/drift")
    assert all(re.search(rf"{name} 0\.00 as before", drift) for name in ("flow", "ripple", "oil"))
    policy = seen.text("/policy")
    assert str(answered.folder / "policy.toml") in policy and "You own it" in policy
    assert "level-bundle" in policy and "fedavg" not in policy
    assert content_of(answered.folder) == before


def test_the_same_is_there_as_json(answered: Any, seen: Reader) -> None:
    entries = verify(answered.folder / "ledger.jsonl")
    found = seen.json("/ledger.json")
    assert found["sound"] and found["entries"] == list(entries[::-1]) and found["pages"] == 1
    first = seen.json("/overview.json")
    assert first["connection"]["connected"] and first["ledger"]["runs"] == 2
    assert first["ledger"]["bytes_today"] == first["ledger"]["bytes"] == sum(entry["bytes"] for entry in entries)
    assert first["ledger"]["last_answer"] == entries[-2]["time"]
    assert seen.json("/exposure.json")["by_differences"] == 0
    drift = seen.json("/drift.json")
    assert drift["drift"] == 0.0 and set(drift["sensors"]) == {"flow", "ripple", "oil"}
    policy = SitePolicy.from_toml(answered.folder / "policy.toml")
    assert SitePolicy.model_validate(seen.json("/policy.json")["policy"]) == policy
    assert set(DOCUMENTS) == {f"/{name}.json" for name in ("overview", "ledger", "exposure", "drift", "policy")}


def test_nobody_reads_a_page_without_the_secret_which_works_once(answered: Any, look: Callable[..., Reader]) -> None:
    reader = look(settings_of(answered.folder))
    address = reader.console.first_address
    for path in [*PAGES, *DOCUMENTS, OPEN, f"{OPEN}?secret=", f"{OPEN}?secret={'x' * 43}", "/nothing"]:
        status, headers, content = reader.ask(path)
        assert status == 403 and "Set-Cookie" not in headers, path
        assert RUN[:8] not in content and "plant-1" not in content, path
    assert reader.ask(address.removeprefix(f"http://127.0.0.1:{reader.console.server_port}"), "HEAD")[0] == 400
    status, headers, _ = reader.ask(f"{OPEN}?{urlsplit(address).query}")
    assert status == 303
    cookie = headers["Set-Cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    secret = urlsplit(address).query.partition("=")[2]
    assert secret not in cookie and len(secret) >= 43 and reader.console.first_address == ""
    assert reader.ask(f"{OPEN}?secret={secret}")[0] == 403, "a second browser"
    name, value = cookie.split(";")[0].split("=", 1)
    for brought in (name, f"{name}=", f"{name}={secret}", f"{name}={value}x", f"other={value}", f"{name}={value[:-1]}"):
        assert reader.ask("/", Cookie=brought)[0] == 403, brought
    assert reader.ask("/", Cookie=f'odd={{"a": 1}}; {name}={value}')[0] == 200, "whatever others set on this host"
    assert reader.ask(f"{OPEN}?secret=", Cookie=f"{name}={value}")[0] == 303, "who is in goes on"


def test_a_name_from_elsewhere_leads_nowhere(seen: Reader) -> None:
    port = seen.console.server_port
    strangers = (
        "evil.example", f"evil.example:{port}", "127.0.0.1", "localhost", "127.0.0.1:1", "",
        f"127.0.0.1.evil.example:{port}", f"[::1]:{port}", f"0.0.0.0:{port}",
    )
    for host, path in itertools.product(strangers, ("/", "/ledger.json", "/console.css", f"{OPEN}?secret=x")):
        status, headers, content = seen.ask(path, Host=host)
        assert status == 421 and "Set-Cookie" not in headers and RUN[:8] not in content, (host, path)
    assert seen.ask("/", Host=f"localhost:{port}")[0] == seen.ask("/", Host=f"127.0.0.1:{port}")[0] == 200


def test_a_reader_who_hangs_up_leaves_no_traceback(seen: Reader, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise ConnectionResetError
    except ConnectionResetError:
        seen.console.handle_error(None, ("127.0.0.1", 1))
    assert capsys.readouterr() == ("", "")


def test_it_listens_on_the_loopback_alone(seen: Reader) -> None:
    assert seen.console.server_address[0] == "127.0.0.1" and seen.console.socket.family == socket.AF_INET


def test_it_can_be_read_and_nothing_else(seen: Reader) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "ANY"):
        status, headers, content = seen.ask("/ledger", method)
        assert status == 405 and headers["Allow"] == "GET, HEAD" and RUN[:8] not in content, method
        assert HEADERS.items() <= headers.items()
    status, headers, content = seen.ask("/ledger", "HEAD")
    assert (status, content) == (200, "")
    assert headers["Content-Length"] == seen.ask("/ledger")[1]["Content-Length"]


def test_every_answer_binds_the_browser(seen: Reader) -> None:
    for path in [*PAGES, *DOCUMENTS, "/console.css", "/icon.svg", "/nothing"]:
        _, headers, content = seen.ask(path)
        assert HEADERS.items() <= headers.items(), path
        assert (headers["X-Content-Type-Options"], headers["Cache-Control"]) == ("nosniff", "no-store")
        assert headers["Referrer-Policy"] == "no-referrer" and "Python" not in headers["Server"]
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; style-src 'self'") and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy and "http" not in policy
        assert not re.search(r"<script|<style|style=|\son\w+=|https?://(?!www\.w3\.org/2000/svg)", content), path


def test_only_the_pages_are_there(seen: Reader) -> None:
    for path in (
        "/site.nk", "/../site.nk", "/%2e%2e/site.nk", "/console.css/../parts.py", "/parts.py", "/ledger.jsonl",
        "/ledger/", "//etc/passwd", "/policy.toml", "/ledger?page=0", "/ledger?page=2", "/ledger?page=-1",
        "/ledger?page=x", "/ledger?page=" + "9" * 5000, "/?" + "&".join("a=1" for _ in range(50)), "/ledger?page=%b2",
    ):
        status, headers, content = seen.ask(path)
        assert status in (400, 404) and "Traceback" not in content, path
        assert HEADERS.items() <= headers.items()


def test_an_empty_site_says_what_to_do_next(
    tmp_path: Path, look: Callable[..., Reader], write_csv: Callable[..., Path]
) -> None:
    settings = settings_of(tmp_path / "new")
    write_csv(table(60), "new/data.csv")
    before = content_of(tmp_path / "new")
    seen = look(settings).enter()
    first = seen.text("/")
    assert "No agent is connected" in first and "no agent of plant-1 was ever connected from here" in first
    assert "Last answer none yet" in first and "Ledger sound 0 entries" in first and "no join yet" in first
    assert "Nothing has left yet" in seen.text("/ledger")
    assert "Nothing has been answered" in seen.text("/exposure") and "No join yet" in seen.text("/drift")
    assert seen.json("/drift.json")["drift"] is None
    assert content_of(tmp_path / "new") == before, "no record is begun by who looks"


def test_the_first_rows_are_not_begun_by_who_looks_where_a_record_is_there(answered: Any, seen: Reader) -> None:
    import sqlite3

    base = sqlite3.connect(answered.folder / "exposure.sqlite")
    with base:
        base.execute("DROP TABLE first_rows")  # a record of before there was a drift
    base.close()
    assert "No join yet" in seen.text("/drift")
    base = sqlite3.connect(answered.folder / "exposure.sqlite")
    assert base.execute("SELECT count(*) FROM sqlite_master WHERE name = 'first_rows'").fetchone() == (0,)
    base.close()
    assert "Answers 8 in 2 runs" in seen.text("/exposure")


def test_readings_that_moved_come_first(answered: Any, seen: Reader, write_csv: Callable[..., Path]) -> None:
    header, *rows = table(100)
    write_csv([header, *([row[0], row[1], min(row[2] + 2.0, 4.0), row[3]] for row in rows)], "site/data.csv")
    drift = seen.text("/drift")
    assert re.search(r"Since the first run oil 0\.\d+ has moved", drift) and re.search(r"flow 0\.\d\d as before", drift)
    assert "Readings have moved since the first run 1 of 3 sensors, the furthest by 0." in seen.text("/")


def test_a_drift_is_kept_for_a_minute_and_then_found_anew(answered: Any, write_csv: Callable[..., Path]) -> None:
    now = [0.0]
    state = SiteState(settings_of(answered.folder), clock=lambda: now[0])
    before = state.drift()["rows"]
    write_csv(table(200), "site/data.csv")
    assert state.drift()["rows"] == before < 100
    now[0] = 61.0
    assert state.drift()["rows"] > 100


def test_a_ledger_that_was_tampered_with_is_told_first(answered: Any, seen: Reader) -> None:
    path = answered.folder / "ledger.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    changed = json.loads(lines[3]) | {"bytes": 1}
    path.write_text("".join([*lines[:3], json.dumps(changed) + "\n", *lines[4:]]))
    first, ledger = seen.text("/"), seen.text("/ledger")
    assert "act The ledger is not what was written entry 4 was changed" in first and "Ledger changed" in first
    assert "entry 4 was changed: it does not have its own hash" in ledger and "Sound" not in ledger
    found = seen.json("/ledger.json")
    assert not found["sound"] and any("entry 4" in problem for problem in found["problems"])
    path.write_text("".join(lines[:-1]))
    assert "entry 9 is missing, cut off at the end" in seen.text("/ledger")


def forged(previous: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """An entry as somebody writes it who may write to the folder: its hash is right."""
    made = {"sequence": previous["sequence"] + 1, "previous": previous["hash"], **fields}
    return made | {"hash": entry_hash(made)}


def test_whatever_the_files_hold_stays_words(answered: Any, seen: Reader) -> None:
    path = answered.folder / "ledger.jsonl"
    last = verify(path)[-1]
    named = {"time": HOSTILE, "message": HOSTILE, "kind": HOSTILE, "run": HOSTILE, "shapes": {HOSTILE: [HOSTILE]}}
    odd: list[dict[str, Any]] = [
        named, {"shapes": 3, "bytes": "many", "round": None, "exposure": [], "masking": 1, "time": None},
        {"bytes": 10**400, "exposure": {"by_differences": float("nan"), "rows": -1}, "time": "2026-01-01"},
        {"time": "0001-01-01T00:00:00+23:00", "message": "hello"}, {"time": "9999-12-31T23:59:59-23:00"},
        {"bytes": float("inf"), "masking": {"message": HOSTILE, "words": 7}, "run": {"a": HOSTILE}, "kind": "\ud800"},
    ]
    for fields in odd:
        last = forged(last, **fields)
        with path.open("a") as file:
            file.write(json.dumps(last) + "\n")
    for page in PAGES:
        status, _, content = seen.ask(page)
        assert status == 200 and "<script" not in content and "<img" not in content, page
    assert "&lt;script&gt;" in seen.ask("/ledger")[2]
    assert seen.json("/ledger.json")["count"] == 15
    assert line(forged(last, bytes=True, round=2.0)).round == 2 and line(forged(last, bytes=True)).bytes is None


def test_names_of_sensors_policies_and_paths_are_escaped() -> None:
    found = {"drift": 0.5, "since": "2026-01-01T00:00:00", "chance": 0.1, "rows": 20, "sensors": {HOSTILE: 0.5},
             "told": [HOSTILE], "trouble": None}
    policy = json.loads(SitePolicy(methods=("fedavg",), auditors=(HOSTILE,)).model_dump_json())
    shown = [
        pages.drift(found), pages.drift(found | {"drift": None}), pages.exposure({"trouble": HOSTILE}),
        pages.policy({"path": HOSTILE, "policy": policy, "trouble": None}),
        pages.policy({"path": HOSTILE, "policy": None, "trouble": HOSTILE}), pages.ledger({"trouble": HOSTILE}),
    ]
    for page in shown:
        assert "&lt;script&gt;" in page and "<script" not in page and "<img" not in page


def test_files_that_fail_are_notices_and_never_a_traceback(answered: Any, seen: Reader) -> None:
    (answered.folder / "exposure.sqlite").write_bytes(b"no database at all" * 100)
    (answered.folder / "policy.toml").write_text("min_samples = 0\n")
    (answered.folder / "data.csv").unlink()
    note(SiteSettings.from_toml(answered.folder / "site.toml")).unlink()
    first = seen.text("/")
    assert "The policy cannot be read" in first and "min_samples" in first and "The data cannot be read" in first
    assert "Agent away no agent of plant-1 was ever connected" in first
    for page in PAGES:
        assert "Traceback" not in seen.text(page)
    assert "min_samples" in seen.text("/policy") and seen.json("/policy.json")["policy"] is None
    (answered.folder / "policy.toml").write_text(default_policy_text(("pump",)))
    assert "The exposure is not known" in seen.text("/exposure") and "fails" in seen.json("/exposure.json")["trouble"]
    (answered.folder / "ledger.jsonl").unlink()
    (answered.folder / "ledger.jsonl").mkdir()
    assert "cannot be read" in seen.text("/ledger") and "cannot be read" in seen.text("/")


def test_a_record_whose_numbers_were_changed_is_a_notice(answered: Any, seen: Reader) -> None:
    import sqlite3

    base = sqlite3.connect(answered.folder / "exposure.sqlite")
    with base:
        base.execute("UPDATE sketch SET numbers = x'010203'")
        base.execute("UPDATE first_rows SET shares = x'01'")
    base.close()
    assert "the record is damaged" in seen.text("/exposure") and "the record is damaged" in seen.text("/drift")


def test_it_is_read_while_the_agent_answers(answered: Any, seen: Reader) -> None:
    """The agent holds its lock and writes; who looks neither waits for it nor stops it, and sees each answer."""
    for number in range(4, 10):
        assert answer(answered, RUN, number, np.full(4, number / 10)).type == "update"
        assert seen.json("/ledger.json")["count"] == 9 + number - 3
        assert seen.json("/exposure.json")["answers"] == 8 + number - 3


def test_an_entry_that_is_written_between_two_reads_is_no_damage(
    answered: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent writes line and head while the page has read one file and not yet the other."""
    path, read = answered.folder / "ledger.jsonl", Path.read_bytes

    def slow(self: Path) -> bytes:
        data = read(self)
        answered.ask(run_id="c" * 32, round=0)
        return data

    monkeypatch.setattr(Path, "read_bytes", slow)
    assert read_ledger(path).problems == ()


def test_long_ledgers_have_pages(tmp_path: Path, look: Callable[..., Reader]) -> None:
    settings, last = settings_of(tmp_path / "long"), {"sequence": 0, "hash": "0" * 64}
    lines = []
    for number in range(2 * PAGE + 3):
        last = forged(last, message="hello", bytes=1, time=datetime.now(UTC).isoformat(), shapes={}, fields=[number])
        lines.append(json.dumps(last) + "\n")
    settings.ledger.write_text("".join(lines))
    Path(f"{settings.ledger}.head").write_text(f"{len(lines):020d} {last['hash']}\n")
    seen = look(settings).enter()
    assert "Entries 1 to 50 of 103" in seen.text("/ledger")
    _, _, second = seen.ask("/ledger?page=2")
    assert 'rel="prev" href="/ledger?page=1"' in second and 'rel="next" href="/ledger?page=3"' in second
    third = seen.json("/ledger.json?page=3")
    assert [entry["sequence"] for entry in third["entries"]] == [3, 2, 1] and third["bytes"] == 103


def test_today_begins_at_midnight(tmp_path: Path) -> None:
    path, last = tmp_path / "ledger.jsonl", {"sequence": 0, "hash": "0" * 64}
    now = datetime(2026, 3, 4, 0, 30, tzinfo=UTC)
    lines = []
    for minutes, size in ((29, 5), (31, 7)):
        at = (now - timedelta(minutes=minutes)).isoformat()
        last = forged(last, message="refusal", bytes=size, time=at)
        lines.append(json.dumps(last) + "\n")
    path.write_text("".join(lines))
    found = LedgerView(path).summary(now)
    assert (found["bytes"], found["bytes_today"], found["refusals_of_a_day"]) == (12, 5, 2)
    assert LedgerView(path).summary(now + timedelta(days=1))["refusals_of_a_day"] == 0


def test_what_wants_attention_is_in_order() -> None:
    sound = {
        "ledger": {"sound": True, "problems": []}, "policy": {"trouble": None}, "connection": {"connected": True},
        "exposure": {"trouble": None, "by_differences": 2, "rows": 10, "exposure_limit": 0.2, "runs_left_today": 1},
        "drift": {"trouble": None, "drift": 0.0},
    }
    assert attention(sound) == []
    above = sound | {"exposure": sound["exposure"] | {"by_differences": 3, "runs_left_today": 0}}
    assert [each["kind"] for each in attention(above)] == ["bad", "warn"]
    gone = above | {"connection": {"connected": False, "told": "gone"}, "ledger": {"sound": False, "problems": ["x"]}}
    assert [each["why"] for each in attention(gone)][0] == "x" and attention(gone)[-1]["why"] == "gone"


def test_every_line_of_a_policy_is_on_its_page() -> None:
    policy = json.loads(SitePolicy(methods=("fedavg",)).model_dump_json())
    page = pages.policy({"path": "p", "policy": policy, "trouble": None})
    elsewhere = {"methods", "asset_types", "messages", "reveal", "peers", "auditors"}
    told = {name for name, *_ in [*policy_words.switches(policy), *policy_words.limits(policy)]}
    assert told | elsewhere == set(SitePolicy.model_fields)
    assert set(policy_words.MESSAGES) == set(get_args(Kind)) and set(policy_words.REVEALS) == set(get_args(Reveal))
    more = policy | {"messages": ["join"], "own_scores": True}
    allowed = pages.policy({"path": "p", "policy": more, "trouble": None})
    assert page.count("may leave</span>") + 2 == allowed.count("may leave</span>")


def test_the_command_serves_until_it_is_told_to_stop(answered: Any) -> None:
    settings_of(answered.folder)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
        config = ["console", "--config", str(answered.folder / "site.toml"), "--port", str(port)]
        assert main(config) == 1, "the port is taken"
        assert main([*config[:-1], "70000"]) == 1, "no port"
    command = [sys.executable, "-m", "services.site_agent", *config]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(3)]
        address = urlsplit(told[1].strip())
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("GET", f"{address.path}?{address.query}")
        assert connection.getresponse().status == 303
        connection.close()
        process.send_signal(signal.SIGTERM)
        rest, said = process.communicate(timeout=20)
    assert (process.returncode, rest, said) == (0, "", "")
