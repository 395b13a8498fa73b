"""`ballast doctor` says which ways to other hosts are open to who is on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from api.system.finding import Finding
from api.system.ways import ways
from services.process.settings import Settings


def found(environment: dict[str, str] | None = None, **sections: Any) -> list[Finding]:
    return list(ways(Settings.model_validate({"home": Path("/nowhere"), **sections}), environment or {}))


def nats(*servers: str, ca: str | None = None) -> dict[str, Any]:
    return {"servers": servers, "seed_file": "seed.nk", "ca_file": ca}


def test_of_this_host_nothing_is_said() -> None:
    assert found() == []
    assert found(
        database_url="postgresql://ballast:word@localhost/ballast", nats=nats("nats://127.0.0.1:4222"),
        mlflow={"tracking_uri": "http://[::1]:5000"}, prefect={"api_url": "http://localhost:4200/api"},
    ) == []
    assert found(database_url="postgresql:///ballast?host=/run/postgresql") == []
    assert found(database_url="postgresql://b@db:port/b", mlflow={"tracking_uri": "http://[::1"}) == []


@pytest.mark.parametrize(("sections", "check", "todo"), [
    ({"database_url": "postgresql://b:word@db/b"}, "way to the store", "add ?sslmode=verify-full to its address"),
    ({"database_url": "postgres://b:word@db/b?sslmode=require"}, "way to the store", "add ?sslmode=verify-full"),
    ({"mlflow": {"tracking_uri": "postgresql://b:word@db/mlflow"}}, "way to the registry", "add ?sslmode=verify-full"),
    ({"prefect": {"database_url": "postgresql+asyncpg://b:word@db/prefect"}}, "way to Prefect's database",
     "add ?ssl=verify-full to its address"),
    ({"mlflow": {"tracking_uri": "http://mlflow:5000"}}, "way to the registry", "write its address https://"),
    ({"prefect": {"api_url": "http://prefect:4200/api"}}, "way to Prefect", "write its address https://"),
    ({"nats": nats("nats://bus:4222")}, "way to the plant link", "write its address tls://"),
    ({"nats": nats("ws://bus:80")}, "way to the plant link", "write its address tls://"),
])
def test_a_way_that_is_open_is_told_with_what_to_do(sections: dict[str, Any], check: str, todo: str) -> None:
    (told,) = found(**sections)
    assert (told.check, told.state) == (check, "warn") and told.todo.startswith(todo)
    assert "word" not in told.model_dump_json().replace("password", "")


def test_ways_that_are_shut_are_told_on_one_line() -> None:
    (told,) = found(
        database_url="postgresql://b:word@db/b?sslmode=verify-full",
        nats=nats("tls://one:4222", "nats://two:4222", ca="c"),
        mlflow={"tracking_uri": "https://mlflow"}, prefect={"api_url": "https://prefect/api"},
    )
    assert (told.check, told.state, told.said) == ("ways", "ok", "5 to other hosts, each encrypted, its server checked")


def test_one_open_way_among_others_is_told_alone() -> None:
    (told,) = found(database_url="postgresql://b:word@db/b?sslmode=verify-ca", nats=nats("nats://bus:4222"))
    assert told.check == "way to the plant link"


def test_what_the_environment_says_to_postgresql_holds_where_the_address_says_nothing() -> None:
    environment = {"PGSSLMODE": "verify-full"}
    (told,) = found(environment, database_url="postgresql://b:word@db/b")
    assert told.state == "ok"
    (told,) = found(environment, database_url="postgresql://b:word@db/b?sslmode=disable")
    assert told.state == "warn" and "(sslmode disable)" in told.said
