from __future__ import annotations

from typing import Any
from urllib.parse import quote

from services.contracts.access.identity import Role


def test_the_audit_trail_is_listed_by_pages_and_verified(any_world: Any) -> None:
    for number in range(4):
        any_world.call(Role.ADMINISTRATOR, "POST", "/v1/admin/tokens", {"name": f"gateway {number}", "role": "viewer"})
    path = "/v1/admin/audit"

    def listed(query: str = "") -> list[dict[str, Any]]:
        return any_world.call(Role.ADMINISTRATOR, "GET", path + query).json()["events"]

    everything = listed()
    count = 4 + len(Role)  # the tokens of the roles are there before
    assert [event["number"] for event in everything] == list(range(count, 0, -1))
    assert listed("?limit=2&offset=1") == everything[1:3]
    assert listed(f"?target={everything[0]['target']}") == everything[:1]
    assert listed("?action=site.enrol") == []
    by = everything[0]["actor"]
    assert listed(f"?actor={quote(by)}") == [event for event in everything if event["actor"] == by] != everything
    assert listed(f"?actor={quote(by[:-1])}") == []
    instant = quote(everything[2]["at"])
    assert listed(f"?since={instant}") == everything[:3] and listed(f"?until={instant}") == everything[3:]
    wrong = any_world.call(Role.ADMINISTRATOR, "GET", f"{path}?since=2030-01-02T00:00Z&until=2030-01-01T00:00Z")
    assert wrong.status_code == 422 and "comes before since" in wrong.json()["detail"]
    report = any_world.call(Role.ADMINISTRATOR, "GET", f"{path}/verify").json()
    assert report == {"ok": True, "events": count, "head": everything[0]["hash"], "problem": ""}
