"""Condition indicators against scipy and against signals with known answers."""

import numpy as np
import pytest
import scipy.signal
import scipy.stats

from models.features.condition_indicators import (
    FRAME,
    FRAME_HOP,
    INDICATOR_NAMES,
    INDICATOR_UNITS,
    POWER_FLOOR,
    condition_indicators,
    kurtosis_frequency,
    periodogram,
)

RATE = 1000.0
T = 1200


def named(flow, rate=RATE):
    """Indicators by name."""
    return dict(zip(INDICATOR_NAMES, condition_indicators(flow, rate).T, strict=True))


def sine(frequency, amplitude=1.0, length=T, rate=RATE, phase=0.3):
    return amplitude * np.sin(2 * np.pi * frequency * np.arange(length) / rate + phase)


@pytest.fixture(scope="module")
def noisy():
    """Ten signals with a mean, ripple, skewed noise."""
    random = np.random.default_rng(3)
    ripple = np.stack([sine(f, 2.0) + sine(2 * f, 0.7) for f in random.uniform(30.0, 60.0, 10)])
    return 40.0 + ripple + random.gamma(2.0, 0.5, (10, T))


def test_fourteen_names_units_and_columns(noisy):
    assert len(INDICATOR_NAMES) == len(set(INDICATOR_NAMES)) == len(INDICATOR_UNITS) == 14
    assert condition_indicators(noisy, RATE).shape == (10, 14)


def test_moments_agree_with_scipy_and_numpy(noisy):
    found = named(noisy)
    close = {"rtol": 1e-12}
    np.testing.assert_allclose(found["flow_mean"], noisy.mean(axis=1), **close)
    np.testing.assert_allclose(found["flow_variance"], noisy.var(axis=1, ddof=1), **close)
    np.testing.assert_allclose(found["flow_skewness"], scipy.stats.skew(noisy, axis=1), rtol=1e-9)
    np.testing.assert_allclose(found["flow_kurtosis"], scipy.stats.kurtosis(noisy, axis=1, fisher=False), rtol=1e-9)
    np.testing.assert_allclose(found["flow_peak_to_peak"], noisy.max(axis=1) - noisy.min(axis=1), **close)
    np.testing.assert_allclose(found["flow_rms"] ** 2, (noisy**2).sum(axis=1) / T, **close)
    np.testing.assert_allclose(found["flow_crest_factor"] * found["flow_rms"], noisy.max(axis=1), **close)
    deviation = [np.abs(row - row.mean()).mean() for row in noisy]
    np.testing.assert_allclose(found["flow_mean_absolute_deviation"], deviation, **close)


def test_the_cumulative_range_of_a_positive_flow_is_all_but_its_first_sample(noisy):
    np.testing.assert_allclose(named(noisy)["flow_cumulative_range"], noisy[:, 1:].sum(axis=1), rtol=1e-12)


def test_the_cumulative_range_of_a_flow_that_turns_is_the_way_between_its_turns():
    flow = np.concatenate([np.full(300, 2.0), np.full(900, -1.0)])
    assert named(flow[None])["flow_cumulative_range"][0] == pytest.approx(900.0)


def test_moments_of_a_whole_number_of_sine_periods_are_the_textbook_ones():
    found = {name: value[0] for name, value in named(40.0 + sine(2.5, 3.0)[None]).items()}
    assert found["flow_mean"] == pytest.approx(40.0)
    assert found["flow_variance"] == pytest.approx(4.5 * T / (T - 1))
    assert found["flow_skewness"] == pytest.approx(0.0, abs=1e-9)
    assert found["flow_kurtosis"] == pytest.approx(1.5)
    assert found["flow_rms"] == pytest.approx(np.sqrt(1600.0 + 4.5))
    assert found["flow_mean_absolute_deviation"] == pytest.approx(6.0 / np.pi, rel=1e-4)


def test_the_periodogram_is_that_of_scipy(noisy):
    for length in (T, T - 1):
        signal = noisy[:, :length]
        frequencies, density = periodogram(signal - signal.mean(axis=1, keepdims=True), RATE)
        wanted = scipy.signal.periodogram(signal, RATE, window="hann", detrend="constant", axis=1)
        np.testing.assert_allclose(frequencies, wanted[0], rtol=1e-12)
        np.testing.assert_allclose(density, wanted[1], rtol=1e-8, atol=1e-16)


def test_band_powers_agree_with_scipy(noisy):
    found = named(noisy)
    f, density = scipy.signal.periodogram(noisy, RATE, window="hann", detrend="constant", axis=1)
    bands = {
        "power_10_20_hz": (f >= 10) & (f <= 20),
        "power_40_60_hz": (f >= 40) & (f <= 60),
        "power_over_100_hz": f > 100,
    }
    for name, band in bands.items():
        np.testing.assert_allclose(found[name], 10 * np.log10(density[:, band].sum(axis=1) * RATE / T), rtol=1e-9)


@pytest.mark.parametrize(
    ("frequency", "band"), [(15.0, "power_10_20_hz"), (50.0, "power_40_60_hz"), (200.0, "power_over_100_hz")]
)
def test_a_sine_has_power_half_its_amplitude_squared_in_its_band_and_none_elsewhere(frequency, band):
    found = named((40.0 + sine(frequency, 3.0))[None])
    assert found[band][0] == pytest.approx(10 * np.log10(4.5), abs=1e-6)
    for other in ("power_10_20_hz", "power_40_60_hz", "power_over_100_hz"):
        if other != band:
            assert found[other][0] < -60.0


def test_the_peak_is_found_between_the_bins():
    frequencies = np.linspace(12.0, 230.0, 57)
    flow = np.stack([40.0 + sine(f, 2.0) for f in frequencies])
    np.testing.assert_allclose(named(flow)["peak_frequency"], frequencies, atol=0.02 * RATE / T)


def test_the_peak_is_the_strongest_of_two_and_not_the_mean():
    flow = 1000.0 + sine(20.0, 1.0) + sine(90.0, 1.5)
    assert named(flow[None])["peak_frequency"][0] == pytest.approx(90.0, abs=0.02)


def test_spectral_kurtosis_finds_the_frequency_of_a_burst():
    random = np.random.default_rng(0)
    for frequency in (62.5, 125.0, 250.0, 375.0):
        flow = 40.0 + 0.1 * random.standard_normal(T)
        flow[500:560] += sine(frequency, 2.0, 60) * np.hanning(60)
        assert abs(named(flow[None])["kurtosis_frequency"][0] - frequency) <= RATE / FRAME + 1e-9


def test_spectral_kurtosis_agrees_with_a_short_time_transform_of_scipy(noisy):
    centred = noisy - noisy.mean(axis=1, keepdims=True)
    window = scipy.signal.windows.hann(FRAME, sym=False)
    transform = scipy.signal.ShortTimeFFT(window, FRAME_HOP, RATE)
    first, last = transform.lower_border_end[1], transform.upper_border_begin(T)[1]
    X = np.abs(transform.stft(centred)[..., first - transform.p_min : last - transform.p_min])[:, 2 : FRAME // 2]
    kurtosis = (X**4).mean(axis=-1) / (X**2).mean(axis=-1) ** 2 - 2.0
    wanted = transform.f[2 : FRAME // 2][np.argmax(kurtosis, axis=1)]
    np.testing.assert_allclose(kurtosis_frequency(centred, RATE), wanted)


def test_a_measurement_does_not_depend_on_its_neighbours(noisy):
    together = condition_indicators(noisy, RATE)
    alone = np.concatenate([condition_indicators(row[None], RATE) for row in noisy])
    np.testing.assert_allclose(together, alone, rtol=1e-12)
    assert condition_indicators(np.empty((0, T)), RATE).shape == (0, 14)


@pytest.mark.parametrize("level", [0.0, 40.1, -3.3])
def test_a_flow_that_stands_still_has_finite_indicators(level):
    found = {name: value[0] for name, value in named(np.full((1, T), level)).items()}
    floor = 10 * np.log10(POWER_FLOOR)
    assert found["peak_frequency"] == found["kurtosis_frequency"] == found["flow_variance"] == 0.0
    assert found["flow_skewness"] == found["flow_kurtosis"] == found["flow_peak_to_peak"] == 0.0
    assert found["power_10_20_hz"] == found["power_40_60_hz"] == found["power_over_100_hz"] == floor
    assert found["flow_mean"] == pytest.approx(level)
    assert found["flow_crest_factor"] == (pytest.approx(1.0) if level else 0.0)


def test_a_flow_that_moves_by_rounding_alone_stands_still():
    flow = np.full((1, T), 40.1)
    flow[0, ::3] = np.nextafter(40.1, 50.0)
    found = {name: value[0] for name, value in named(flow).items()}
    assert found["peak_frequency"] == found["flow_skewness"] == found["flow_kurtosis"] == 0.0


def test_a_ripple_at_half_the_sampling_rate_is_no_peak():
    """Its image in the bin below may be one, at most half a bin above that."""
    found = named((np.where(np.arange(T) % 2, -5.0, 5.0) + sine(60.0, 1.0))[None])
    assert found["peak_frequency"][0] <= (RATE - RATE / T) / 2 + 1e-9


def test_the_floor_of_a_power_adds_nothing_to_what_is_above_it():
    found = named(sine(50.0, np.sqrt(8.0 * POWER_FLOOR))[None])
    assert found["power_40_60_hz"][0] == pytest.approx(10 * np.log10(4.0 * POWER_FLOOR), abs=1e-3)


def test_other_sampling_rates_keep_the_frequencies():
    flow = 40.0 + sine(50.0, 2.0, length=2400, rate=2000.0)
    found = named(flow[None], 2000.0)
    assert found["peak_frequency"][0] == pytest.approx(50.0, abs=0.02)
    assert found["power_40_60_hz"][0] == pytest.approx(10 * np.log10(2.0), abs=1e-6)


@pytest.mark.parametrize(
    ("flow", "rate", "says"),
    [
        (np.ones(T), RATE, "shape"),
        (np.ones((2, 100)), RATE, "T >= 256"),
        (np.ones((2, 255)), RATE, "T >= 256"),
        (np.ones((2, T)), 200.0, "over 200 Hz"),
        (np.ones((2, T)), float("nan"), "over 200 Hz"),
        (np.full((2, T), np.nan), RATE, "finite"),
    ],
)
def test_what_does_not_fit_is_refused(flow, rate, says):
    with pytest.raises(ValueError, match=says):
        condition_indicators(flow, rate)
