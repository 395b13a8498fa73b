"""Downloads against a local server: what is kept, what is refused, and the checksums of the real tables."""

from __future__ import annotations

import csv
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.benchmarks.data import load_binary
from tests.benchmarks.fetch import SOURCES, Source, digest, fetch, main
from tests.benchmarks.images import FetchError
from tests.tables import table_or_skip

ROWS = [["1.50", "2", "a"], ["-3e-1", "?", "b"]]
TOY = {"toy": Source(1, "10.0/none", "Class", digest(ROWS), drop=("ID",), labels={"A": "a"})}


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    folder = tmp_path / "mirror"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), lambda *args: QuietHandler(*args, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def put(mirror: Path, number: int, text: str) -> None:
    (mirror / str(number)).mkdir()
    (mirror / str(number) / "data.csv").write_text(text, encoding="utf-8")


def test_writes_the_expected_table_in_one_format(mirror: tuple[Path, str], tmp_path: Path) -> None:
    put(mirror[0], 1, "ID,Big Size,w,Class\n7,1.5000,2.0,A\n8,-0.3,,b\n")
    path = fetch("toy", tmp_path / "data", base=mirror[1], sources=TOY)
    assert path.read_text() == "big_size,w,label\n1.5,2,a\n-0.3,,b\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("ID,x,y,Class\n7,1.5,3,A\n8,-0.3,,b\n", "is not the expected table"),
        ("ID,x,y,Kind\n7,1.5,2,A\n", "has no column 'Class'"),
        ("ID,x,y,Class\n7,much,2,A\n", "is no number"),
        ("", "has no column 'Class'"),
    ],
)
def test_keeps_nothing_that_is_not_the_table(mirror: tuple[Path, str], tmp_path: Path, text: str, line: str) -> None:
    put(mirror[0], 1, text)
    with pytest.raises(FetchError, match=line):
        fetch("toy", tmp_path / "data", base=mirror[1], sources=TOY)
    assert not (tmp_path / "data").exists()


def test_says_where_to_get_it_by_hand(mirror: tuple[Path, str], tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"could not be read .*404.* by hand from https://doi.org/10.0/none"):
        fetch("toy", tmp_path, base=mirror[1], sources=TOY)
    with pytest.raises(FetchError, match="there is no table 'other'; tables are toy"):
        fetch("other", tmp_path, base=mirror[1], sources=TOY)


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_the_tables_at_hand_have_the_known_checksums(
    mirror: tuple[Path, str], tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table, source = table_or_skip(name), SOURCES[name]
    with table.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    lines = [",".join([*header[:-1], source.target])] + [",".join(row) for row in rows]
    put(mirror[0], source.number, "\n".join(lines) + "\n")
    assert main([name, "--out", str(tmp_path / "data"), "--base", mirror[1]]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "data" / f"{name}.csv")


def test_the_loader_says_how_to_get_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BALLAST_DATA_DIR", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="python -m tests.benchmarks.fetch sonar"):
        load_binary("sonar", ("M",))
