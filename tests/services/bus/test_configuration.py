"""What the server's configuration lets each user do, to the letter, and how its servers know one another."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from annotated_types import Le

from services.bus.configuration import (
    MOST_SUBSCRIPTIONS,
    RESPONSE_WINDOW,
    BusFiles,
    ClusterPart,
    users_text,
    write_server,
)
from services.contracts.errors import ConflictError
from services.contracts.keys.signing import new_seed_file
from services.contracts.plans.plan import Plan


@pytest.fixture
def keys(tmp_path: Path) -> list[str]:
    return [new_seed_file(tmp_path / f"{number}.nk") for number in range(4)]


def permissions(text: str) -> dict[str, str]:
    """What each key may do, by the key."""
    return dict(re.findall(r"^ *\{ nkey: (\w+), permissions: \{ (.*) \} \}$", text, re.MULTILINE))


def test_a_site_hears_its_own_tasks_answers_each_once_and_says_hello(keys: list[str]) -> None:
    oem, former, one, other = keys
    found = permissions(users_text(f"{oem} {former}", {"plant-1": one, "plant-2": other}))
    assert found[oem] == found[former] == 'publish: ["site.*.task"], subscribe: ["_COORD.>", "hello.*"]'
    for site, key in (("plant-1", one), ("plant-2", other)):
        assert found[key] == (
            f'publish: ["hello.{site}"], subscribe: ["site.{site}.task"], '
            'allow_responses: { max: 1, expires: "24h" }'
        )
    assert len(found) == 4


def test_the_server_takes_an_answer_for_as_long_as_a_plan_may_wait_for_it() -> None:
    (longest,) = (each.le for each in Plan.model_fields["round_deadline_seconds"].metadata if isinstance(each, Le))
    assert RESPONSE_WINDOW == f"{longest / 3600:g}h"


def test_while_a_key_is_changed_both_of_a_site_may_do_the_same(keys: list[str]) -> None:
    oem, before, after, _ = keys
    found = permissions(users_text(oem, {"plant-1": f"{before} {after}"}))
    assert found[before] == found[after] and len(found) == 3


@pytest.mark.parametrize("other", ["the OEM", "site plant-1"])
def test_a_key_is_of_one_bearer(keys: list[str], other: str) -> None:
    oem, one, _, _ = keys
    taken = oem if other == "the OEM" else one
    with pytest.raises(ConflictError, match=f"site plant-2 bears the key of {other}") as said:
        users_text(oem, {"plant-1": one, "plant-2": taken})
    assert said.value.code == "key_taken"


def test_servers_of_a_cluster_ask_one_another_for_certificates_and_name_no_folder(tmp_path: Path) -> None:
    files = BusFiles(tmp_path)
    part = ClusterPart("a", "0.0.0.0", 6222, "a.example:6222", ["a.example:6222", "b.example:6222"])
    write_server(files, host="0.0.0.0", port=4222, max_payload=1024, cluster=part)
    text = files.configuration.read_text()
    assert re.search(r"cluster \{.*  verify: true\n\}\n\}", text, re.DOTALL) and "no_advertise: true" in text
    assert str(tmp_path) not in text and 'cert_file: "server.pem"' in text and "log_file" not in text
    assert text.count("tls {") == 2 and "websocket" not in text
    assert oct(files.configuration.stat().st_mode & 0o777) == "0o600"


def test_web_sockets_are_heard_over_tls_where_they_are_asked_for(tmp_path: Path) -> None:
    files = BusFiles(tmp_path)
    write_server(files, host="127.0.0.1", port=4222, max_payload=1024, websocket_port=443)
    text = files.configuration.read_text()
    assert re.search(r'websocket \{\nlisten: "127.0.0.1:443"\n.*tls \{\n  cert_file', text, re.DOTALL)
    assert "no_tls" not in text and f'log_file: "{files.log.resolve()}"' in text and "cluster" not in text


def test_an_ipv6_host_stands_in_brackets_before_its_port(tmp_path: Path) -> None:
    files = BusFiles(tmp_path)
    for host, written in (("::", "[::]"), ("[fd00::2]", "[fd00::2]"), ("0.0.0.0", "0.0.0.0")):
        write_server(files, host=host, port=4222, max_payload=1024, websocket_port=8443)
        listens = re.findall(r'^listen: "(.*)"$', files.configuration.read_text(), re.MULTILINE)
        assert listens == [f"{written}:4222", f"{written}:8443"]
        part = ClusterPart("a", host, 6222, "a.example:6222", ["a.example:6222"])
        write_server(files, host=host, port=4222, max_payload=1024, cluster=part)
        listens = re.findall(r'^listen: "(.*)"$', files.configuration.read_text(), re.MULTILINE)
        assert listens == [f"{written}:4222", f"{written}:6222"]


def test_a_server_says_what_it_takes_and_logs_in_utc(tmp_path: Path) -> None:
    """Its log is read beside those of the services, and a connection that is gone is seen within a minute."""
    write_server(BusFiles(tmp_path), host="127.0.0.1", port=4222, max_payload=1_048_577)
    lines = BusFiles(tmp_path).configuration.read_text().splitlines()
    said = {name: value for name, _, value in (line.strip().partition(": ") for line in lines) if value}
    assert said["max_payload"] == "1048577" and said["max_subscriptions"] == str(MOST_SUBSCRIPTIONS)
    assert (said["logtime_utc"], said["ping_interval"], said["timeout"]) == ("true", '"20s"', "5")
