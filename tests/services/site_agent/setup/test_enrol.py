"""``ballast-site enrol``: over real TLS and real NATS, and every way in which it must leave nothing behind."""

from __future__ import annotations

import asyncio
import http.server
import json
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nats
import pytest

from api.backend.actor import local_administrator
from api.backend.wiring import open_backend
from api.cli.commands.up import prepare_stores
from api.cli.main import main as ballast
from api.cli.processes import stack
from api.cli.processes.supervisor import Supervisor
from api.sites import service as sites
from services.bus.certificates import ensure_certificates
from services.bus.configuration import BusFiles, TlsFiles
from services.contracts.access.enrolment import EnrolmentPackage, read_code
from services.contracts.errors import InvalidInputError
from services.contracts.keys.signing import public_key
from services.contracts.machines.asset_type import AssetType
from services.plant_simulator.assets import builtin_asset_type
from services.process.settings import Settings
from services.site_agent.agent import serve
from services.site_agent.cli import main
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.settings import SiteSettings
from services.site_agent.setup import enrol
from tests.loopback import serving
from tests.ports import free_port
from tests.services.site_agent.proxy import WORD, Proxy
from tests.waiting import PATIENCE

Capture = pytest.CaptureFixture[str]


@dataclass(frozen=True)
class Oem:
    """The OEM's side: the API by TLS for everybody, and the embedded NATS server."""

    settings: Settings

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.settings.api.port}"

    def code(self, site_id: str, capture: Capture, *more: str) -> str:
        """A code, by the command; what it prints is the command for the plant."""
        capture.readouterr()
        assert ballast(["site", "enrol-code", site_id, "--home", str(self.settings.home), *more]) == 0
        line = capture.readouterr().out
        assert line.startswith(f"ballast-site enrol --url {self.url} --code blse_{site_id}_")
        return line.split()[5]

    def keys(self) -> dict[str, str]:
        with open_backend(self.settings) as backend:
            return {site.site_id: site.public_key for site in backend.store.sites.list_sites()}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, new_mlflow: Callable[[Path], str]) -> Iterator[Oem]:
    home = tmp_path_factory.mktemp("oem") / "home"
    home.mkdir()
    api, link, web_socket = (free_port() for _ in range(3))
    ports = f'[api]\nhost = "0.0.0.0"\nport = {api}\n\n[nats]\nport = {link}\nwebsocket_port = {web_socket}\n'
    (home / "ballast.toml").write_text(ports)
    settings = Settings.load(home)
    assert new_mlflow(home) == settings.tracking_uri
    prepare_stores(settings)
    with Supervisor(stack.log_folder(settings), print) as supervisor:
        stack.start_bus(supervisor, settings)
        stack.start_api(supervisor, settings)
        with open_backend(settings) as backend:
            backend.store.asset_types.add(builtin_asset_type("triplex-pump"))
        for name in ("nats", "api"):
            supervisor.wait_ready(name)
        yield Oem(settings)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text("flow_mean,label\n1,healthy\n")
    return path


async def says_hello(settings: SiteSettings, server: Oem) -> None:
    """Run the agent until its hello has come to the OEM; fails where none comes."""
    client, heard, files = nats.NATS(), asyncio.Event(), BusFiles(server.settings.bus_folder)

    async def on_hello(message: Any) -> None:
        heard.set()

    context = ssl.create_default_context(cafile=str(files.authority))
    address = f"tls://127.0.0.1:{server.settings.nats.port}"
    await client.connect(address, tls=context, nkeys_seed=str(files.coordinator_seed))
    await client.subscribe(f"hello.{settings.site_id}", cb=on_hello)
    await client.flush()
    agent, word = asyncio.create_task(serve(settings, PATIENCE)), asyncio.create_task(heard.wait())
    await asyncio.wait({agent, word}, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
    assert heard.is_set(), agent
    agent.cancel()
    await asyncio.gather(agent, return_exceptions=True)
    await client.close()


def refused(capture: Capture, *arguments: str) -> str:
    capture.readouterr()
    assert main(["enrol", *arguments]) == 1
    out, said = capture.readouterr()
    assert out == "" and said.startswith("ballast-site: ") and said.count("\n") == 1, said
    return said


def test_one_command_makes_a_plant_that_connects(server: Oem, tmp_path: Path, rows: Path, capsys: Capture) -> None:
    code, folder = server.code("plant-7", capsys), tmp_path / "plants" / "plant-7"
    assert main(["enrol", "--url", server.url, "--code", code, "--data", str(rows), "--dir", str(folder)]) == 0
    said = capsys.readouterr().out
    settings, files = SiteSettings.from_toml(folder / "site.toml"), BusFiles(server.settings.bus_folder)
    key = public_key(settings.nkey_seed)
    assert key in said and f"--config {folder / 'site.toml'}" in said
    assert "The data do not fit yet: rows.csv has no column 'peak_frequency'" in said  # it is enrolled all the same
    assert server.keys()["plant-7"] == key
    assert {path.name for path in folder.iterdir()} == {
        "site.toml", "policy.toml", "site.nk", "asset_type.toml", "ca.pem"
    }
    assert settings.nkey_seed.stat().st_mode & 0o077 == 0
    assert settings.ca == folder / "ca.pem" and settings.ca.read_text() == files.authority.read_text()
    assert settings.oem_key == public_key(files.coordinator_seed)
    assert settings.servers == (f"tls://127.0.0.1:{server.settings.nats.port}",)
    assert AssetType.from_toml(settings.asset_type) == builtin_asset_type("triplex-pump")
    assert SitePolicy.from_toml(settings.policy).asset_types == ("triplex-pump",)
    assert settings.data.path == rows

    asyncio.run(says_hello(settings, server))


def test_a_code_that_does_not_hold_leaves_nothing_behind(
    server: Oem, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    used, revoked = server.code("plant-8", capsys), server.code("plant-9", capsys)
    server.code("plant-9", capsys)
    assert main(["enrol", "--url", server.url, "--code", used, "--dir", "first"]) == 0
    wrong = used.replace("plant-8", "plant-6")
    for code, word in ((used, "was used already"), (revoked, "was revoked"), (wrong, "is not known")):
        said = refused(capsys, "--url", server.url, "--code", code, "--dir", "a/b")
        assert word in said and read_code(code).secret not in said
        assert not (tmp_path / "a").exists()
    (tmp_path / "there").mkdir()
    refused(capsys, "--url", server.url, "--code", used, "--dir", "there")
    assert list((tmp_path / "there").iterdir()) == []


def test_nothing_is_sent_to_a_server_with_another_certificate(
    server: Oem, tmp_path: Path, capsys: Capture
) -> None:
    """A server in between with a certificate for the same name, of an authority of its own."""
    files = TlsFiles(tmp_path / "tls")
    ensure_certificates(files, ["127.0.0.1"])
    asked: list[bytes] = []

    class InBetween(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # noqa: N802
            asked.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_error(500)

        def log_message(self, *_: object) -> None:
            pass

    between = http.server.ThreadingHTTPServer(("127.0.0.1", 0), InBetween)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    between.socket = context.wrap_socket(between.socket, server_side=True)
    with serving(between):
        url = f"https://127.0.0.1:{between.server_address[1]}"
        code = server.code("plant-5", capsys)
        said = refused(capsys, "--url", url, "--code", code, "--dir", str(tmp_path / "p"))
        assert "shows another certificate" in said and "Nothing was sent" in said
        unpinned = f"{code.rpartition('_')[0]}_system"
        said = refused(capsys, "--url", url, "--code", unpinned, "--dir", str(tmp_path / "p"))
        assert "does not fit" in said
    assert asked == [] and not (tmp_path / "p").exists()
    assert main(["enrol", "--url", server.url, "--code", code, "--dir", str(tmp_path / "p")]) == 0, "it still holds"


def test_behind_a_proxy_one_command_makes_a_plant_that_connects(
    server: Oem, proxy: Proxy, tmp_path: Path, rows: Path, capsys: Capture
) -> None:
    code, folder, word = server.code("plant-11", capsys), tmp_path / "p", tmp_path / "proxy.auth"
    word.write_text(WORD + "\n")
    way = ("--proxy", proxy.url, "--proxy-auth", str(word), "--dir", str(folder))
    assert main(["enrol", "--url", server.url, "--code", code, "--data", str(rows), *way]) == 0
    address = f"127.0.0.1:{server.settings.nats.websocket_port}"
    settings = SiteSettings.from_toml(folder / "site.toml")
    assert settings.servers == (f"wss://{address}",)
    assert (settings.proxy, settings.proxy_auth) == (proxy.url, word)
    assert proxy.asked == [server.url.removeprefix("https://")] and read_code(code).secret.encode() not in proxy.seen
    asyncio.run(says_hello(settings, server))
    assert proxy.asked[1:] == [address]


@pytest.mark.parametrize(("word", "said"), [
    (None, "give a file with user:password as --proxy-auth"), ("plant:wrong", "another user or password"),
    ("plant", "must hold user:password on one line"),
])
def test_a_proxy_that_does_not_open_is_one_line_and_nothing_is_left(
    server: Oem, proxy: Proxy, tmp_path: Path, capsys: Capture, word: str | None, said: str
) -> None:
    code, file, folder = server.code("plant-12", capsys), tmp_path / "proxy.auth", tmp_path / "p"
    file.write_text(word or "")
    way = ["--proxy", proxy.url, *(["--proxy-auth", str(file)] if word else [])]
    line = refused(capsys, "--url", server.url, "--code", code, "--dir", str(folder), *way)
    assert said in line and "wrong" not in line
    assert not folder.exists() and proxy.asked == [] and proxy.refused == (said.find("on one line") < 0)


def test_where_the_oem_has_no_web_socket_the_settings_name_no_proxy(
    server: Oem, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = EnrolmentPackage(
        site_id="plant-13", asset_type=builtin_asset_type("triplex-pump"), servers=("tls://oem.example:4222",)
    )
    monkeypatch.setattr(enrol, "_ask", lambda *_: package)
    code, folder = server.code("plant-13", capsys), tmp_path / "p"
    assert main(["enrol", "--url", server.url, "--code", code, "--dir", str(folder), "--proxy", "http://p:3128"]) == 0
    assert "named no WebSocket (wss://) but tls://oem.example:4222" in capsys.readouterr().out
    assert SiteSettings.from_toml(folder / "site.toml").proxy is None


def test_a_lost_answer_is_asked_for_again_with_the_same_key(
    server: Oem, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, folder = server.code("plant-4", capsys), tmp_path / "p"
    heard, ask = [], enrol._answer

    def lose(*request: Any) -> Any:
        heard.append(ask(*request))
        raise enrol._NoAnswerError("TimeoutError")

    monkeypatch.setattr(enrol, "_answer", lose)
    monkeypatch.setattr("services.site_agent.setup.enrol.time.sleep", lambda _: None)
    said = refused(capsys, "--url", server.url, "--code", code, "--dir", str(folder))
    assert "give the same command again" in said and len(heard) == enrol.TRIES
    assert [path.name for path in folder.iterdir()] == [enrol.WAITING_SEED]
    key = public_key(folder / enrol.WAITING_SEED)
    monkeypatch.setattr(enrol, "_answer", ask)
    assert main(["enrol", "--url", server.url, "--code", code, "--dir", str(folder)]) == 0
    assert server.keys()["plant-4"] == key == public_key(folder / "site.nk")
    assert not (folder / enrol.WAITING_SEED).exists()


@pytest.mark.parametrize(("end", "code"), [(KeyboardInterrupt(), 130), (enrol.EnrolmentError("too many tries"), 1)])
def test_a_key_that_the_oem_may_have_is_not_thrown_away(
    server: Oem, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, end: BaseException, code: int
) -> None:
    """By who interrupts the command, or by a refusal after an answer that did not come."""
    site = f"plant-3{code}"
    word, folder = server.code(site, capsys), tmp_path / "p"
    ask, ends = enrol._answer, [enrol._NoAnswerError("TimeoutError"), end]

    def lose(*request: Any) -> Any:
        ask(*request)
        raise ends.pop(0)

    with monkeypatch.context() as patch:
        patch.setattr(enrol, "_answer", lose)
        patch.setattr("services.site_agent.setup.enrol.time.sleep", lambda _: None)
        assert main(["enrol", "--url", server.url, "--code", word, "--dir", str(folder)]) == code
    key = public_key(folder / enrol.WAITING_SEED)
    assert main(["enrol", "--url", server.url, "--code", word, "--dir", str(folder)]) == 0
    assert server.keys()[site] == key == public_key(folder / "site.nk")


def test_an_enrolment_that_was_interrupted_while_it_wrote_goes_on(
    server: Oem, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key is moved last; what stands beside it then is written anew, unless somebody else wrote it."""
    word, folder = server.code("plant-9", capsys), tmp_path / "p"
    command = ["enrol", "--url", server.url, "--code", word, "--dir", str(folder)]

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", killed)
        assert main(command) == 130
    whole = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert set(whole) == {"site.toml", "policy.toml", "asset_type.toml", "ca.pem", enrol.WAITING_SEED}
    (folder / "asset_type.toml").write_bytes(whole["asset_type.toml"][:100])  # as after a power cut
    (folder / "ca.pem").unlink()
    (folder / "policy.toml").write_text("# mine\n")
    assert "policy.toml exists already" in refused(capsys, *command[1:])
    assert (folder / "policy.toml").read_text() == "# mine\n" and (folder / enrol.WAITING_SEED).exists()
    (folder / "policy.toml").unlink()
    assert main(command) == 0
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name in whole} == {
        name: text for name, text in whole.items() if name != enrol.WAITING_SEED
    }
    assert server.keys()["plant-9"] == public_key(folder / "site.nk")


def test_a_plant_that_lost_its_key_comes_back_while_the_others_stay(
    server: Oem, tmp_path: Path, capsys: Capture
) -> None:
    first = server.code("plant-3", capsys)
    assert main(["enrol", "--url", server.url, "--code", first, "--dir", str(tmp_path / "old")]) == 0
    with open_backend(server.settings) as backend:
        before = server.keys()
        sites.suspend(backend, local_administrator(), "plant-3", "stolen")
        code = server.code("plant-3", capsys, "--replace-key")
        assert main(["enrol", "--url", server.url, "--code", code, "--dir", str(tmp_path / "new")]) == 0
        after = server.keys()
        assert backend.store.sites.get("plant-3").status == "suspended"
    assert before.pop("plant-3") != after.pop("plant-3") and before == after


@pytest.mark.parametrize(("change", "said"), [
    (lambda server, code: [server.url, "blse_nothing"], "no enrolment code"),
    (lambda server, code: [server.url.replace("https", "http"), code], "https://"),
    (lambda server, code: ["http://oem.example.com", code], "everybody on the way"),
    (lambda server, code: ["oem.example.com:8000", code], "https://host:port"),
    (lambda server, code: [f"https://127.0.0.1:{free_port()}", code], "no server answers"),
    (lambda server, code: ["https://oem..example", code], "at oem..example:443 (no host has such a name); nothing was"),
    (lambda server, code: [server.url, code, "--proxy", "http://p..corp:80"], "p..corp:80 to 127.0.0.1"),
    (lambda server, code: [f"{server.url}/b\xe4", code], "https://host:port"),
    (lambda server, code: [f"{server.url}/a b", code], "https://host:port"),
    (lambda server, code: ["https://oem\x1b.example", code], "https://host:port"),
    (lambda server, code: [server.url, code, "--proxy", "socks5://p:1080"], "proxy is written http://host:port"),
    (lambda server, code: [server.url, code, "--proxy", f"http://127.0.0.1:{free_port()}"], "no way through the proxy"),
    (lambda server, code: [server.url, code, "--proxy-auth", "word"], "give --proxy too"),
    (lambda server, code: [server.url, code, "--data", "nowhere.csv"], "no data at nowhere.csv"),
    (lambda server, code: [server.url, code, "--allow-method", "Bad Name"], "methods"),
])
def test_a_mistake_is_said_before_anything_is_sent(
    server: Oem, tmp_path: Path, capsys: Capture, change: Callable[[Oem, str], list[str]], said: str
) -> None:
    code = server.code("plant-2", capsys)
    url, text, *more = change(server, code)
    assert said in refused(capsys, "--url", url, "--code", text, "--dir", str(tmp_path / "p"), *more)
    assert not (tmp_path / "p").exists()
    with open_backend(server.settings) as backend:
        assert backend.store.enrolment_codes.list_codes("plant-2")[0].used_at is None


def test_a_folder_that_holds_a_site_is_left_alone(server: Oem, tmp_path: Path, capsys: Capture) -> None:
    code = server.code("plant-1", capsys)
    assert main(["init", "--site-id", "plant-1", "--dir", str(tmp_path / "p")]) == 0
    before = {path: path.read_bytes() for path in (tmp_path / "p").iterdir()}
    assert "exists already" in refused(capsys, "--url", server.url, "--code", code, "--dir", str(tmp_path / "p"))
    assert {path: path.read_bytes() for path in (tmp_path / "p").iterdir()} == before


@dataclass
class Answering:
    """A connection whose answer has a status and bytes of one letter, as many as are read."""

    status: int
    asked: list[int] = field(default_factory=list)

    def request(self, *_: object) -> None: ...

    def getresponse(self) -> Any:
        return self

    def read(self, size: int = 10**6) -> bytes:
        self.asked.append(size)
        return b"x" * size


REQUEST: Any = SimpleNamespace(model_dump_json=lambda **_: "{}", site_id="plant-1")


def test_of_an_answer_without_end_no_more_is_read_than_the_largest_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enrol, "LARGEST_ANSWER", 1000)
    connection: Any = Answering(200)
    with pytest.raises(enrol._NoAnswerError, match="no enrolment"):
        enrol._answer(connection, "", REQUEST)
    assert connection.asked == [1001]


@pytest.mark.parametrize(("status", "error"), [
    (500, enrol._NoAnswerError), (503, enrol._NoAnswerError), (499, enrol.EnrolmentError), (404, enrol.EnrolmentError),
])
def test_what_a_server_that_fails_did_is_not_known_and_one_that_refuses_did_nothing(
    status: int, error: type[Exception]
) -> None:
    connection: Any = Answering(status)
    with pytest.raises(error):
        enrol._answer(connection, "", REQUEST)


def test_an_answer_about_another_site_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a proxy that keeps answers: its files would make the plant a site whose key it does not have."""
    for site, taken in (("plant-1", True), ("plant-2", False)):
        package = SimpleNamespace(model_validate_json=lambda _, site=site: SimpleNamespace(site_id=site))
        monkeypatch.setattr(enrol, "EnrolmentPackage", package)
        connection: Any = Answering(200)
        if taken:
            assert enrol._answer(connection, "", REQUEST).site_id == site
            continue
        with pytest.raises(enrol._NoAnswerError, match="of another site"):
            enrol._answer(connection, "", REQUEST)


@pytest.mark.parametrize("more", ["ada@{}", "ada:word@{}", "{}/?a=b", "{}/#a"])
def test_an_address_with_more_than_a_place_is_refused(more: str) -> None:
    """A name or a question in it would be left out without a word."""
    host = "oem.example:8000"
    assert enrol.Server.of(f"https://{host}/ballast", None).port == 8000
    with pytest.raises(InvalidInputError, match="is written https://host:port"):
        enrol.Server.of(f"https://{more.format(host)}", None)


def test_what_a_server_says_is_one_line_without_control_characters() -> None:
    assert enrol._detail(json.dumps({"detail": "no\n\x1b[31mred"}).encode()) == "no [31mred"
    for body in (b"<html>", b"[" * 100_000, b"[]"):
        assert enrol._detail(body) == "it gave no reason that can be read"
