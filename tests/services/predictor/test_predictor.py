from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.multiclass import predict_class
from services.contracts.errors import InvalidInputError
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.versions.model_version import ModelVersion
from services.predictor.predictor import Predictor
from services.predictor.sensors import SensorReader

MakeVersion = Callable[..., ModelVersion]
BINARY = [[4.0, -2.0, 0.0, 1.0, 0.25]]
FOUR = [[1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0, -1.0], [0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, -3.0, 1.0]]


def test_two_classes_by_hand(make_version: MakeVersion, sample: dict[str, float]) -> None:
    """Scaled the sample is (.75, .25, .5, .5): the plane gives 3 - .5 + 0 + .5 + .25 = 3.25."""
    (found,) = Predictor(make_version(BINARY)).diagnose([sample])
    assert (found.fault_class, found.severity) == ("leak", 3)
    assert found.scores == {"healthy": -3.25, "leak": 3.25}
    assert found.robustness_radius == pytest.approx(3.25 / math.sqrt(16 + 4 + 1))
    assert [(s.feature, s.value, s.unit, s.contribution) for s in found.contributing_sensors] == [
        ("flow_mean", 60.0, "l/min", 1.0),
        ("flow_ripple", 2.5, "l/min", 0.5),
    ]
    assert (found.clipped, found.imputed, found.abstained, found.reason) == ((), (), False, "")


def test_the_other_side_of_the_plane_is_the_healthy_class_with_its_own_signs(
    make_version: MakeVersion, sample: dict[str, float]
) -> None:
    (found,) = Predictor(make_version([[-4.0, 2.0, 0.0, -1.0, -0.25]])).diagnose([sample])
    assert (found.fault_class, found.severity) == ("healthy", 0)
    assert found.scores == {"healthy": 3.25, "leak": -3.25}
    assert found.contributing_sensors[0].contribution == 1.0


def test_four_classes_by_hand(make_version: MakeVersion, sample: dict[str, float]) -> None:
    """Scores .75, -.5, .5, -.5; the nearest rival is the third class, .25 away over the norm of (1, 0, -1, 0)."""
    (found,) = Predictor(make_version(FOUR)).diagnose([sample])
    assert (found.fault_class, found.severity) == ("healthy", 0)
    assert found.scores == {"healthy": 0.75, "leak": -0.5, "blocked_inlet": 0.5, "worn_bearing": -0.5}
    assert found.robustness_radius == pytest.approx(0.25 / math.sqrt(2))
    assert [(s.feature, s.contribution) for s in found.contributing_sensors] == [("flow_mean", 0.25)]


@pytest.mark.parametrize(("norm", "dual"), [("l1", 4.0), ("l2", math.sqrt(21.0)), ("linf", 7.0)])
def test_the_radius_is_in_the_dual_of_the_transport_norm_and_leaves_the_intercept_out(
    make_version: MakeVersion, sample: dict[str, float], norm: str, dual: float
) -> None:
    (found,) = Predictor(make_version(BINARY, transport_norm=norm)).diagnose([sample])
    assert found.robustness_radius == pytest.approx(3.25 / dual)


def test_on_the_plane_itself_the_class_is_the_first_as_in_the_evaluation_and_the_radius_nothing(
    make_version: MakeVersion, sample: dict[str, float]
) -> None:
    weights = np.array([[2.0, 0.0, 0.0, 0.0, -1.5]])
    (found,) = Predictor(make_version(weights)).diagnose([sample])
    assert predict_class(weights, np.array([[0.75, 0.25, 0.5, 0.5]])).tolist() == [0]
    assert (found.fault_class, found.robustness_radius) == ("healthy", 0.0)


def test_a_model_that_nothing_changes_has_no_radius(make_version: MakeVersion, sample: dict[str, float]) -> None:
    (found,) = Predictor(make_version([[0.0, 0.0, 0.0, 0.0, 1.0]])).diagnose([sample])
    assert found.robustness_radius is None and found.contributing_sensors == () and found.fault_class == "leak"


weights = st.floats(-5, 5, allow_nan=False).map(lambda value: round(value, 3))


@given(
    planes=st.sampled_from([1, 3, 4]).flatmap(
        lambda k: st.lists(st.lists(weights, min_size=4, max_size=4), min_size=k, max_size=k)
    ),
    point=st.lists(st.floats(0.2, 0.8), min_size=3, max_size=3),
    norm=st.sampled_from(["l1", "l2", "linf"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_no_move_shorter_than_the_radius_changes_the_class(
    make_version: MakeVersion, planes: list[list[float]], point: list[float], norm: str, seed: int
) -> None:
    predictor = Predictor(make_version(planes, transport_norm=norm))
    features = predictor.version.asset_type.features
    at = {f.name: f.low + (f.high - f.low) * x for f, x in zip(features, point, strict=True)}
    (found,) = predictor.diagnose([at])
    radius = 1.0 if found.robustness_radius is None else found.robustness_radius
    moves = np.random.default_rng(seed).normal(size=(20, 3))
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    moves *= (min(radius, 0.19) * (1 - 1e-6) / np.linalg.norm(moves, ord=order, axis=1))[:, None]
    moved = [
        {f.name: at[f.name] + (f.high - f.low) * step for f, step in zip(features, move, strict=True)} for move in moves
    ]
    if radius > 1e-9:
        assert {each.fault_class for each in predictor.diagnose(moved)} == {found.fault_class}


@given(st.lists(st.lists(weights, min_size=5, max_size=5), min_size=3, max_size=4))
def test_contributions_sum_to_the_score_over_that_of_the_middle(
    make_version: MakeVersion, planes: list[list[float]]
) -> None:
    predictor = Predictor(make_version(planes))
    middle = {f.name: (f.low + f.high) / 2 for f in predictor.version.asset_type.features}
    given_sample = {"flow_mean": 79.0, "flow_ripple": 0.5, "pressure": 110.0, "oil_temperature": 3.0}
    found, centre = predictor.diagnose([given_sample, middle])
    total = sum(sensor.contribution for sensor in found.contributing_sensors)
    assert total == pytest.approx(found.scores[found.fault_class] - centre.scores[found.fault_class], abs=1e-9)


def test_where_classes_are_one_problem_sensors_speak_for_the_class_whose_plane_is_zero_too(
    make_version: MakeVersion, sample: dict[str, float]
) -> None:
    """Contributions add up to the score above the mean of all scores, so no class is counted from another."""
    planes = [[0.0] * 5, [-4.0, 2.0, 0.0, 1.0, 0.0], [-2.0, 0.0, 0.0, 0.0, 0.0]]
    (found,) = Predictor(make_version(planes, multi_class="crammer_singer")).diagnose([sample])
    assert found.fault_class == "healthy"
    assert [(s.feature, pytest.approx(s.contribution)) for s in found.contributing_sensors] == [
        ("flow_mean", 2.0 * 0.25), ("flow_ripple", -2.0 / 3.0 * -0.25),
    ]
    shifted = [[one + more for one, more in zip(plane, (3.0, -1.0, 0.0, 2.0, 0.5), strict=True)] for plane in planes]
    (other,) = Predictor(make_version(shifted, multi_class="crammer_singer")).diagnose([sample])
    assert [s.contribution for s in other.contributing_sensors] == pytest.approx(
        [s.contribution for s in found.contributing_sensors]
    )


def test_many_samples_are_diagnosed_as_each_alone(make_version: MakeVersion) -> None:
    predictor = Predictor(make_version(FOUR))
    rng = np.random.default_rng(3)
    samples = [
        {"flow_mean": a, "flow_ripple": b, "pressure": c, "oil_temperature": d}
        for a, b, c, d in rng.uniform([-5, -2, 100, -30], [90, 12, 300, 150], size=(200, 4)).tolist()
    ]
    together = predictor.diagnose(samples)
    for one, sample in zip(together, samples, strict=True):
        (alone,) = predictor.diagnose([sample])
        assert alone.fault_class == one.fault_class and alone.clipped == one.clipped
        assert list(alone.scores.values()) == pytest.approx(list(one.scores.values()), abs=1e-14)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda part: predictor.diagnose(part), [samples] * 4)) == [together] * 4


def test_at_most_five_sensors_the_strongest_first(make_version: MakeVersion) -> None:
    version = make_version([[1.0, -3.0, 2.0, 4.0, 0.5, 6.0, 0.0]])
    sample = {"flow_mean": 80.0, "flow_ripple": 0.0, "pressure": 300.0, "oil_temperature": 140.0}
    (found,) = Predictor(version).diagnose([{**sample, "vibration": 50.0, "speed": 0.0}])
    names = [sensor.feature for sensor in found.contributing_sensors]
    assert names == ["speed", "oil_temperature", "flow_ripple", "pressure", "flow_mean"]
    assert found.contributing_sensors[0].contribution == -3.0


def test_sensors_that_push_alike_stand_in_the_order_of_the_asset_type() -> None:
    features = tuple(Feature(name=f"s{k}", unit=f"u{k}", low=0.0, high=1.0) for k in range(200))
    classes = tuple(FaultClass(name=name, severity=k) for k, name in enumerate(("healthy", "leak")))
    reader = SensorReader(AssetType(name="pump", features=features, fault_classes=classes))
    alike = np.tile([1.0, -1.0], (3, 100))
    alike[1, 7] = 2.0
    found = reader.strongest(np.arange(600.0).reshape(3, 200), alike)
    assert found.order.tolist() == [[0, 1, 2, 3, 4], [7, 0, 1, 2, 3], [0, 1, 2, 3, 4]]
    assert [(each["feature"], each["unit"], each["value"]) for each in found.rows()[1][:2]] == [
        ("s7", "u7", 207.0), ("s0", "u0", 200.0),
    ]


def test_out_of_range_is_clipped_and_named_and_a_missing_optional_feature_is_imputed_and_named(
    make_version: MakeVersion, sample: dict[str, float]
) -> None:
    predictor = Predictor(make_version(BINARY))
    del sample["oil_temperature"]
    first, second = predictor.diagnose([{**sample, "flow_mean": 85.0, "flow_ripple": -3.0}, sample])
    assert first.clipped == ("flow_mean", "flow_ripple") and first.imputed == ("oil_temperature",)
    assert first.scores["leak"] == 4.0 - 0.0 + 0.5 + 0.25
    assert first.contributing_sensors[0].value == 85.0
    assert second.clipped == () and second.imputed == ("oil_temperature",)
    middle = {**sample, "oil_temperature": 60.0}
    assert predictor.diagnose([middle])[0].scores == second.scores


def test_abstains_below_the_asked_radius_and_says_why(make_version: MakeVersion, sample: dict[str, float]) -> None:
    radius = Predictor(make_version(BINARY)).diagnose([sample])[0].robustness_radius
    assert radius is not None
    (sure,) = Predictor(make_version(BINARY), abstain_below_radius=radius).diagnose([sample])
    (unsure,) = Predictor(make_version(BINARY), abstain_below_radius=radius * 1.01).diagnose([sample])
    assert not sure.abstained
    assert unsure.abstained and "below the asked" in unsure.reason and unsure.fault_class == "leak"


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf])
def test_abstaining_needs_a_radius(make_version: MakeVersion, bad: float) -> None:
    with pytest.raises(InvalidInputError, match="abstain_below_radius"):
        Predictor(make_version(BINARY), abstain_below_radius=bad)


BAD: dict[str, tuple[Mapping[str, object], str]] = {
    "missing": ({"flow_mean": None}, "sample 1: missing required feature flow_mean$"),
    "unknown": ({"flow_meam": 3.0}, "sample 1: unknown feature 'flow_meam', did you mean flow_mean$"),
    "unlike": ({"zz": 3.0}, "sample 1: unknown feature 'zz', the features are flow_mean, flow_ripple, "),
    "nan": ({"flow_mean": math.nan}, "sample 1, feature flow_mean must be a finite number, got NaN or infinity$"),
    "infinite": ({"flow_ripple": -math.inf}, "sample 1, feature flow_ripple must be a finite number"),
    "huge": ({"flow_ripple": 10**400}, "sample 1, feature flow_ripple must be a finite number"),
    "text": ({"flow_mean": "1.5"}, "sample 1, feature flow_mean must be a number, got text$"),
    "true": ({"flow_mean": True}, "sample 1, feature flow_mean must be a number, got bool$"),
    "list": ({"flow_mean": [1.0]}, "sample 1, feature flow_mean must be a number, got list$"),
    "refused": (
        {"pressure": 314.15926},
        "sample 1, feature pressure is outside its sensor range 100 to 300 bar, which the contract refuses$",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_does_not_fit_is_one_line_that_names_sample_and_feature(
    make_version: MakeVersion, sample: dict[str, float], case: str
) -> None:
    change, message = BAD[case]
    bad = {name: value for name, value in {**sample, **change}.items() if value is not None}
    with pytest.raises(InvalidInputError, match=message) as caught:
        Predictor(make_version(BINARY)).diagnose([sample, bad])  # type: ignore[list-item]  # what a caller may send
    assert "\n" not in str(caught.value) and "314.15926" not in str(caught.value)


def test_none_in_a_required_feature_is_refused(make_version: MakeVersion, sample: dict[str, float]) -> None:
    for name in ("flow_mean", "oil_temperature"):
        bad: dict[str, object] = {**sample, name: None}
        with pytest.raises(InvalidInputError, match=f"feature {name} must be a number, got nothing"):
            Predictor(make_version(BINARY)).diagnose([bad])  # type: ignore[list-item]  # what a caller may send


def test_whole_numbers_and_numpy_numbers_are_numbers(make_version: MakeVersion, sample: dict[str, float]) -> None:
    predictor = Predictor(make_version(BINARY))
    whole = {"flow_mean": 60, "flow_ripple": np.float32(2.5), "pressure": np.int64(200), "oil_temperature": 60}
    assert predictor.diagnose([whole]) == predictor.diagnose([sample])


def test_units_are_checked_where_they_are_given(make_version: MakeVersion, sample: dict[str, float]) -> None:
    predictor = Predictor(make_version(BINARY))
    predictor.diagnose([sample], {"pressure": "bar", "flow_mean": "l/min"})
    with pytest.raises(InvalidInputError, match="units: feature pressure must be in bar, got 'psi'"):
        predictor.diagnose([sample], {"pressure": "psi"})
    with pytest.raises(InvalidInputError, match="units: unknown feature 'presure', did you mean pressure"):
        predictor.diagnose([sample], {"presure": "bar"})


def test_no_sample_is_refused(make_version: MakeVersion) -> None:
    with pytest.raises(InvalidInputError, match="at least one"):
        Predictor(make_version(BINARY)).diagnose([])

