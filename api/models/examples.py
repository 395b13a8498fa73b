"""Example requests of diagnosis and estimation, for the documentation."""

from __future__ import annotations

from fastapi.openapi.models import Example

FEATURES_EXAMPLE: dict[str, float] = {
    "peak_frequency": 47.5,
    "power_10_20_hz": -3.1,
    "power_40_60_hz": 8.0,
    "power_over_100_hz": -6.6,
    "kurtosis_frequency": 250.0,
    "flow_mean": 39.1,
    "flow_variance": 9.6,
    "flow_skewness": -0.71,
    "flow_kurtosis": 2.45,
    "flow_peak_to_peak": 12.8,
    "flow_crest_factor": 1.12,
    "flow_rms": 39.2,
    "flow_mean_absolute_deviation": 2.56,
    "flow_cumulative_range": 46900.0,
}
"""A measurement of the built-in asset type ``triplex-pump``, for the documentation."""

_MANY = {
    "samples": [FEATURES_EXAMPLE, FEATURES_EXAMPLE | {"flow_mean": 40.2, "power_10_20_hz": -24.5}],
    "units": {"flow_mean": "L/min"},
}

DIAGNOSE = {
    "one": Example(summary="one measurement", value={"sample": FEATURES_EXAMPLE}),
    "many": Example(
        summary="two measurements, units checked, by the challenger's version", value=_MANY | {"alias": "challenger"}
    ),
}

ESTIMATE = {
    "one": Example(summary="one measurement, an interval of confidence 0.9", value={"sample": FEATURES_EXAMPLE}),
    "many": Example(
        summary="two measurements, units checked, a wider interval", value=_MANY | {"confidence": 0.95}
    ),
}
