"""Who has prepared for a round, which cohorts run, and what each cohort is asked to agree on."""

from __future__ import annotations

from typing import Any

from services.contracts.wire.masking import MaskingCohort, MaskKey, Preparation, default_threshold
from services.coordinator.round_loop.mask_agreements import Agreed, AgreementTerms, MaskAgreements

RUN = "ab" * 16
FIVE, THREE = tuple("abcde"), tuple("xyz")
SITES = (*FIVE, *THREE)


def keys_of(sites: tuple[str, ...]) -> dict[str, MaskKey]:
    return {
        site: MaskKey(run_id=RUN, site_id=site, cohort="0" * 64, public_key=bytes(32), signature=bytes(64))
        for site in sites
    }


def agreed(sites: tuple[str, ...] = FIVE, without: str = "") -> Agreed:
    """Agreed with all of a cohort, or with all but one."""
    cohort = MaskingCohort(
        run_id=RUN, name="cohort-1", keys=dict.fromkeys(sites, "U"), threshold=default_threshold(len(sites))
    )
    return Agreed(cohort, keys_of(tuple(site for site in sites if site != without)))


def prepared(site: str, sites: tuple[str, ...] = FIVE, *, number: int = 3, but: str = "") -> Preparation:
    """What a plant leaves before a round: shares for its peers, or for all but one."""
    return Preparation(
        run_id=RUN, round=number, site_id=site, recovery=b"r", commitments=(bytes(32), bytes(32)),
        sealed={peer: b"s" for peer in sites if peer not in (site, but)},
    )


def agreements(**terms: Any) -> MaskAgreements:
    exchange: Any = None
    whole: dict[str, Any] = {
        "cohorts": {"cohort-1": FIVE, "cohort-2": THREE}, "shares": dict.fromkeys(SITES, 1 / 8), "threshold": 2 / 3,
        "noise": {},
    }
    return MaskAgreements(AgreementTerms(**whole | terms), dict.fromkeys(SITES, "U"), exchange)


def test_a_plant_has_prepared_that_sealed_for_each_peer_with_a_key_and_for_this_round() -> None:
    found = agreed()
    said = {site: prepared(site) for site in "abc"} | {"d": prepared("d", but="a"), "e": prepared("e", number=2)}
    found.note(3, said)
    assert (found.number, found.prepared.keys()) == (3, set("abc"))
    found.note(4, {"a": prepared("a", number=4), "b": None})
    assert (found.number, found.prepared.keys()) == (4, {"a"})
    found.note(None, {"a": prepared("a", number=4)})
    assert (found.number, found.prepared) == (-1, {}), "for no further round"
    fewer = agreed(without="e")
    fewer.note(3, {"a": prepared("a", but="e")})
    assert fewer.prepared.keys() == {"a"}, "who made no key needs no share"


def test_a_cohort_runs_with_as_many_as_a_sum_needs_and_is_agreed_with_anew_until_all_have_prepared() -> None:
    held, one = agreements(), agreed()
    held._agreed["cohort-1"] = one
    for count, runs in ((3, False), (4, True), (5, True)):
        one.note(3, {site: prepared(site) for site in FIVE[:count]})
        assert ("cohort-1" in held.running()) == runs, count
        assert held._ready("cohort-1", 3) == (count == 5) and not held._ready("cohort-1", 4)
    assert not held._ready("cohort-2", 3)
    held.forget()
    assert held.running() == {} and not held._ready("cohort-1", 3)


def test_each_cohort_agrees_on_its_own_terms_under_a_number_of_its_own() -> None:
    shares = dict.fromkeys(FIVE, 0.1) | dict.fromkeys(THREE, 1 / 6)
    held = agreements(auditor="A", audit_every_round=True, shares=shares)
    one, other = held._wanted(RUN, "cohort-1"), held._wanted(RUN, "cohort-2")
    assert (one.keys.keys(), one.shares) == (set(FIVE), dict.fromkeys(FIVE, 0.1))
    assert (other.keys.keys(), other.shares) == (set(THREE), dict.fromkeys(THREE, 1 / 6))
    assert (one.threshold, other.threshold) == (4, 3), "a share of the cohort, and at least three"
    assert (one.auditor, one.audit_every_round, one.noise) == ("A", True, None)
    assert len({one.agreement, other.agreement, held._wanted(RUN, "cohort-1").agreement}) == 3
