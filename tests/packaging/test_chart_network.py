"""Who may speak to whom in the cluster: nothing but what a policy of the chart lists."""

from __future__ import annotations

from typing import Any

from tests.packaging import chart

COMPONENT = "app.kubernetes.io/component"
EVERY_PART = {"app.kubernetes.io/name": "ballast", "app.kubernetes.io/instance": "ballast"}
OPEN = {
    "callers": ["192.0.2.0/24"], "plants": ["198.51.100.0/24"], "database": ["10.1.0.0/16"], "databasePort": 6432,
    "artifacts": ["203.0.113.8/32"], "webhooks": ["203.0.113.9/32"],
}


def peer(said: dict[str, Any]) -> str:
    if "ipBlock" in said:
        return str(said["ipBlock"]["cidr"])
    if "namespaceSelector" in said:
        (name,) = said["namespaceSelector"]["matchLabels"].values()
        return f"namespace {name}"
    labels = dict(said["podSelector"]["matchLabels"])
    part = labels.pop(COMPONENT)
    assert labels == EVERY_PART
    return str(part)


def allowed(network: dict[str, Any]) -> set[tuple[str, str, str, str, object]]:
    """Policy, direction, the other side, protocol and port, for each thing that may pass; a rule without a side fails.

    Kubernetes takes a rule whose list of sides is empty for one that lets everybody through.
    """
    found = set()
    for name, policy in chart.of_kind("NetworkPolicy", {"network": network}).items():
        for way, side in (("ingress", "from"), ("egress", "to")):
            assert not policy["spec"].get(way) or way.capitalize() in policy["spec"]["policyTypes"]
            for rule in policy["spec"].get(way) or ():
                assert rule[side] and rule["ports"], f"{name} lets everybody through"
                found |= {(name.removeprefix("ballast-"), way, peer(each), port["protocol"], port["port"])
                          for each in rule[side] for port in rule["ports"]}
    return found


def test_every_pod_is_shut_both_ways_to_begin_with() -> None:
    policies = chart.of_kind("NetworkPolicy")
    assert policies["ballast-deny"]["spec"] == {
        "podSelector": {"matchLabels": EVERY_PART}, "policyTypes": ["Ingress", "Egress"],
    }
    for name, policy in policies.items():
        chosen = policy["spec"]["podSelector"]["matchLabels"]
        part = name.removeprefix("ballast-")
        assert chosen == EVERY_PART | ({COMPONENT: part} if part in chart.pods() else {})


def test_only_what_is_listed_may_pass() -> None:
    assert allowed(OPEN) == {
        ("names-and-stores", "egress", "namespace kube-system", "UDP", 53),
        ("names-and-stores", "egress", "namespace kube-system", "TCP", 53),
        ("names-and-stores", "egress", "10.1.0.0/16", "TCP", 6432),
        ("names-and-stores", "egress", "203.0.113.8/32", "TCP", 443),
        ("api", "ingress", "192.0.2.0/24", "TCP", "https"),
        ("api", "egress", "203.0.113.9/32", "TCP", 443),
        ("nats", "ingress", "flows", "TCP", "link"),
        ("nats", "ingress", "198.51.100.0/24", "TCP", "link"),
        ("nats", "ingress", "nats", "TCP", "routes"),
        ("nats", "egress", "nats", "TCP", 6222),
        ("flows", "egress", "nats", "TCP", 4222),
        ("flows", "egress", "prefect", "TCP", 4200),
        ("prefect", "ingress", "flows", "TCP", "http"),
    }


def test_who_lists_nobody_lets_nobody_through() -> None:
    nobody = {name: [] for name in ("callers", "plants", "database", "artifacts", "webhooks")}
    sides = {(policy, way, side) for policy, way, side, _, _ in allowed(nobody)}
    assert sides == {
        ("names-and-stores", "egress", "namespace kube-system"), ("nats", "ingress", "flows"),
        ("nats", "ingress", "nats"), ("nats", "egress", "nats"), ("flows", "egress", "nats"),
        ("flows", "egress", "prefect"), ("prefect", "ingress", "flows"),
    }
