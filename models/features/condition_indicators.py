"""Condition indicators of a flow signal: the fourteen of the pump study in the FDR-SVM paper (section 6.2).

All are computed on the samples q_0 .. q_{T-1} of each measurement (sampling rate f_s). With d_t = q_t - mean(q), S(f)
is the one-sided periodogram of d under a periodic Hann window w,

    S(f_k) = c_k |sum_t w_t d_t exp(-2 pi i k t / T)|^2 / (f_s sum_t w_t^2),   c_k = 2 (1 at k = 0 and at k = T / 2),

as ``scipy.signal.periodogram(q, f_s, window="hann", detrend="constant")`` gives it. The window keeps the strong ripple
of a pump from leaking into the weak bands beside it.

Powers are levels, in decibels above 1 (L/min)^2: power grows with the square of a fault's size, and on a linear scale a
range that holds a severe fault leaves no room for a faint one.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

_INDICATORS: Final = {
    "peak_frequency": "Hz",
    "power_10_20_hz": "dB",
    "power_40_60_hz": "dB",
    "power_over_100_hz": "dB",
    "kurtosis_frequency": "Hz",
    "flow_mean": "L/min",
    "flow_variance": "(L/min)^2",
    "flow_skewness": "1",
    "flow_kurtosis": "1",
    "flow_peak_to_peak": "L/min",
    "flow_crest_factor": "1",
    "flow_rms": "L/min",
    "flow_mean_absolute_deviation": "L/min",
    "flow_cumulative_range": "L/min",
}
INDICATOR_NAMES: Final = tuple(_INDICATORS)
"""Names in the order of the columns of :func:`condition_indicators`."""
INDICATOR_UNITS: Final = tuple(_INDICATORS.values())
"""Units in the same order, for flow in L/min; dB are above 1 (L/min)^2."""

POWER_FLOOR: Final = 1e-12
"""Power, in (L/min)^2, under which a level is given as this one's: -120 dB."""

FRAME: Final = 128
"""Length of a frame of the spectral kurtosis, in samples; neighbours start ``FRAME_HOP`` samples apart."""
FRAME_HOP: Final = 32  # a quarter of a frame


def condition_indicators(flow: ArrayLike, sampling_rate: float) -> Array:
    """Fourteen condition indicators of each measurement.

    Parameters
    ----------
    flow : outlet flow, shape (n, T) with T >= 2 ``FRAME``, in L/min.
    sampling_rate : samples a second, over 200 Hz so that the band over 100 Hz exists.

    Returns
    -------
    Array
        Shape (n, 14), columns as ``INDICATOR_NAMES``:

        - ``peak_frequency``: the f_k of the largest S, 0 < f_k < f_s / 2, moved to the vertex of the parabola through
          ln S at k - 1, k, k + 1 (error under 0.02 f_s / T for a sine);
        - ``power_10_20_hz``, ``power_40_60_hz``: 10 log10 P, with P the sum of S(f_k) f_s / T over 10 <= f_k <= 20, or
          40 <= f_k <= 60; ``power_over_100_hz``: the same over f_k > 100. A sine of amplitude A inside a band has
          P = A^2 / 2. P is at least ``POWER_FLOOR``;
        - ``kurtosis_frequency``: see :func:`kurtosis_frequency`;
        - ``flow_mean``; ``flow_variance`` (divisor T - 1);
        - ``flow_skewness`` m_3 / m_2^1.5 and ``flow_kurtosis`` m_4 / m_2^2 (3 for a Gaussian), m_j = mean(d^j);
        - ``flow_peak_to_peak`` max q - min q; ``flow_rms`` sqrt(mean(q^2)); ``flow_crest_factor`` max |q| / RMS;
        - ``flow_mean_absolute_deviation`` mean |d|;
        - ``flow_cumulative_range``: max - min over t of C_t = q_0 + ... + q_t.

        Of a signal that stands still, indicators that would be 0 / 0 are 0.

    Raises
    ------
    ValueError
        If the shape, the length, the sampling rate or a value (not finite) does not fit.
    """
    q = np.asarray(flow, dtype=np.float64)
    if q.ndim != 2 or q.shape[1] < 2 * FRAME:
        raise ValueError(f"flow must have shape (n, T) with T >= {2 * FRAME}, got {q.shape}")
    if not (np.isfinite(sampling_rate) and sampling_rate > 200.0):
        raise ValueError(f"sampling rate must be over 200 Hz, got {sampling_rate}")
    if not np.isfinite(q).all():
        raise ValueError("flow must be finite: a value is NaN or infinite")
    mean, d = _centred(q)
    frequencies, density = periodogram(d, sampling_rate)
    step = sampling_rate / q.shape[1]

    def level(low: float, high: float) -> Array:
        band = density[:, (frequencies >= low) & (frequencies <= high)].sum(axis=1) * step
        decibels: Array = 10.0 * np.log10(np.maximum(band, POWER_FLOOR))
        return decibels

    square = d * d
    m2 = square.mean(axis=1)
    rms = np.sqrt(np.mean(q * q, axis=1))
    columns = (
        _peak_frequency(density, step),
        level(10.0, 20.0),
        level(40.0, 60.0),
        level(np.nextafter(100.0, np.inf), np.inf),
        kurtosis_frequency(d, sampling_rate),
        mean,
        m2 * (q.shape[1] / (q.shape[1] - 1)),
        _ratio(np.mean(square * d, axis=1), m2**1.5),
        _ratio(np.mean(square * square, axis=1), m2**2),
        np.ptp(q, axis=1),
        _ratio(np.max(np.abs(q), axis=1), rms),
        rms,
        np.mean(np.abs(d), axis=1),
        np.ptp(np.cumsum(q, axis=1), axis=1),
    )
    return np.stack(columns, axis=1)


def periodogram(centred: Array, sampling_rate: float) -> tuple[Array, Array]:
    """Frequencies (Hz) and one-sided power density S under a Hann window, shapes (F,) and (n, F), F = T // 2 + 1."""
    length = centred.shape[-1]
    window = _hann(length)
    density: Array = np.abs(np.fft.rfft(centred * window, axis=-1)) ** 2 / (sampling_rate * float(np.sum(window**2)))
    density[..., 1 : (length + 1) // 2] *= 2.0
    return np.asarray(np.fft.rfftfreq(length, 1.0 / sampling_rate), dtype=np.float64), density


def kurtosis_frequency(centred: Array, sampling_rate: float) -> Array:
    """Frequency (Hz) at which the spectral kurtosis of a zero-mean signal is highest, shape (n,).

    The signal is cut into frames of ``FRAME`` samples, ``FRAME_HOP`` apart, under a periodic Hann window. With X_j(f)
    the transform of frame j, SK(f) = mean_j |X_j(f)|^4 / (mean_j |X_j(f)|^2)^2 - 2: 0 for stationary Gaussian noise, -1
    for a steady sine, large where bursts live. Searched from the third bin up (the first two hold the window's image of
    slow drift) to below the Nyquist frequency. 0 for a signal that stands still.
    """
    frames = np.lib.stride_tricks.sliding_window_view(centred, FRAME, axis=-1)[..., ::FRAME_HOP, :]
    power = np.abs(np.fft.rfft(frames * _hann(FRAME), axis=-1)[..., 2 : FRAME // 2]) ** 2
    kurtosis = _ratio(np.mean(power**2, axis=-2), np.mean(power, axis=-2) ** 2)
    frequencies = np.fft.rfftfreq(FRAME, 1.0 / sampling_rate)[2 : FRAME // 2]
    return np.where(kurtosis.max(axis=-1) > 0.0, frequencies[np.argmax(kurtosis, axis=-1)], 0.0)


def _centred(q: Array) -> tuple[Array, Array]:
    """Mean over time, and the signal without it; exactly zero where nothing but rounding is left."""
    mean = q.mean(axis=1)
    d = q - mean[:, None]
    still = np.ptp(q, axis=1) <= 8.0 * np.finfo(np.float64).eps * np.abs(mean)
    d[still] = 0.0
    return mean, d


def _peak_frequency(density: Array, step: float) -> Array:
    """Frequency of the largest density above zero frequency, refined by a parabola through its logarithm."""
    k = 1 + np.argmax(density[:, 1:-1], axis=1)
    rows = np.arange(density.shape[0])
    left, top, right = (np.log(np.maximum(density[rows, k + j], np.finfo(np.float64).tiny)) for j in (-1, 0, 1))
    shift = 0.5 * _ratio(left - right, left - 2.0 * top + right)
    return np.where(density[rows, k] > 0.0, step * (k + np.clip(shift, -0.5, 0.5)), 0.0)


def _hann(length: int) -> Array:
    """Periodic Hann window, 0.5 - 0.5 cos(2 pi t / T)."""
    window: Array = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(length) / length)
    return window


def _ratio(numerator: Array, denominator: Array) -> Array:
    """Quotient, 0 where the denominator is 0."""
    safe = np.where(denominator == 0.0, 1.0, denominator)
    return np.where(denominator == 0.0, 0.0, numerator / safe)
