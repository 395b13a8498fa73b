"""``python -m tests.benchmarks.accuracy.made FOLDER``: made tables for the benchmark of accuracy, the same each time.

Each is hard in one way: classes between others, few faults, wrong labels, heavy tails, products of sensors, units far
apart, cells that are missing. scikit-learn's generators are used where there is one.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets

from models.basics import FloatArray

Made = tuple[Sequence[str], Sequence[Sequence[Any]], Sequence[Any]]
"""Headers without that of the label, cells by row, labels."""


def _draw(number: int) -> np.random.Generator:
    return np.random.default_rng([77, number])


def _numbers(features: FloatArray, outcomes: Sequence[Any] | NDArray[Any], names: Sequence[str] = ()) -> Made:
    names = names or [f"s{j}" for j in range(features.shape[1])]
    return names, [[repr(float(cell)) for cell in row] for row in features], [str(each) for each in outcomes]


def friedman1() -> Made:
    """``10 sin(pi x1 x2) + 20 (x3 - 1/2)^2 + 10 x4 + 5 x5`` of ten sensors, noise of deviation 1."""
    return _numbers(*datasets.make_friedman1(n_samples=600, noise=1.0, random_state=1))


def friedman2() -> Made:
    """Impedance of an alternating-current circuit, noise of deviation 125."""
    return _numbers(*datasets.make_friedman2(n_samples=600, noise=125.0, random_state=2))


def friedman3() -> Made:
    """Phase of an alternating-current circuit, noise of deviation 0.1."""
    return _numbers(*datasets.make_friedman3(n_samples=600, noise=0.1, random_state=3))


def moons_noise() -> Made:
    """Two moons, and four sensors of noise."""
    features, classes = datasets.make_moons(600, noise=0.25, random_state=4)
    return _numbers(np.hstack([features, _draw(4).standard_normal((600, 4))]), classes)


def gaussian_quantiles() -> Made:
    """Three shells of a Gaussian in six sensors."""
    return _numbers(*datasets.make_gaussian_quantiles(n_samples=700, n_features=6, n_classes=3, random_state=5))


def faults_4pct() -> Made:
    """Some 4 % of faults, which move three of ten sensors and widen a fourth."""
    draw = _draw(6)
    classes = (draw.random(1000) < 0.04).astype(int)
    features = draw.standard_normal((1000, 10))
    features[classes == 1, :3] += [1.6, -1.4, 1.2]
    features[classes == 1, 3] *= 2.5
    return _numbers(features, classes)


def label_noise() -> Made:
    """A quarter of the labels of a curved boundary turned round."""
    draw = _draw(7)
    x = draw.uniform(-1, 1, (600, 8))
    truth = (x[:, 0] + x[:, 1] ** 2 * 1.5 - 0.5 + 0.8 * x[:, 2] > 0).astype(int)
    return _numbers(x, np.where(draw.random(600) < 0.25, 1 - truth, truth))


def heavy_tails() -> Made:
    """Four lognormal sensors, and four of Student's t with 2 degrees of freedom; three classes."""
    draw = _draw(8)
    classes = draw.integers(0, 3, 700)
    x = draw.standard_t(2, (700, 8))
    x[:, :4] = np.exp(1.2 * draw.standard_normal((700, 4)))
    x[:, 0] *= np.array([1, 2.2, 4.0])[classes]
    x[:, 1] *= np.array([1.0, 1.0, 0.35])[classes]
    x[:, 4] += np.array([0, 1.5, 0])[classes]
    x[:, 5] += np.array([0, 0, -1.5])[classes]
    return _numbers(x, [("ok", "worn", "leak")[each] for each in classes])


_FAULTS = ("Läuft rund", "Ausrichtung schief", "Lager außen", "Unwucht – stark")
_INDICATORS = (
    "rms", "kurtosis", "skewness", "crest", "peak to peak", "10-40 Hz", "40-70 Hz", "70-150 Hz", "150-400 Hz",
    "400-800 Hz", "800+ Hz", "rpm",
)
_BANDS = ((10, 40), (40, 70), (70, 150), (150, 400), (400, 800), (800, 1024))


def vibration() -> Made:
    """Indicators of half a second of vibration: healthy, twice the shaft's rate, bursts of a bearing, a beat."""
    draw = _draw(9)
    classes, t, found = draw.integers(0, 4, 600), np.arange(1024) / 2048, []
    for fault in classes:
        rate = draw.uniform(24, 31)
        signal = draw.uniform(0.6, 1.4) * np.sin(2 * np.pi * rate * t + draw.uniform(0, 6))
        signal = signal + 0.5 * draw.uniform(0.5, 1.5) * draw.standard_normal(1024)
        if fault == 1:
            signal += draw.uniform(0.3, 0.9) * np.sin(2 * np.pi * 2 * rate * t + draw.uniform(0, 6))
        elif fault == 2:
            phase = (t * rate * 5.3 + draw.random()) % 1
            signal += draw.uniform(0.8, 2.0) * np.exp(-phase * 12) * np.sin(2 * np.pi * 600 * t)
        elif fault == 3:
            signal += draw.uniform(0.5, 1.2) * np.sin(2 * np.pi * rate * t) * (1 + np.sin(2 * np.pi * 3 * t))
        found.append([*_indicators(signal), rate])
    return _numbers(np.array(found), [_FAULTS[each] for each in classes], _INDICATORS)


def _indicators(signal: FloatArray) -> list[float]:
    power, rates = np.abs(np.fft.rfft(signal * np.hanning(1024))) ** 2, np.fft.rfftfreq(1024, 1 / 2048)
    rms, centred = np.sqrt((signal**2).mean()), signal - signal.mean()
    variance = (centred**2).mean()
    return [
        rms, (centred**4).mean() / variance**2, (centred**3).mean() / variance**1.5, np.abs(signal).max() / rms,
        np.ptp(signal), *(power[(rates >= low) & (rates < high)].sum() for low, high in _BANDS),
    ]


def units() -> Made:
    """Whole numbers, 3e9 beside 2e-9, a constant column and two that are told twice; a product of two decides."""
    draw = _draw(10)
    a, b, c = draw.integers(0, 12, 500), draw.integers(0, 5, 500), draw.normal(3e9, 4e8, 500)
    small, q = np.abs(draw.normal(2e-9, 6e-10, 500)), draw.standard_normal(500)
    classes = (((a - 6) * (b - 2) > 0).astype(int) + (q + (c - 3e9) / 4e8 > 1.2)).clip(0, 2)
    return _numbers(np.column_stack([a, b, c, small, q, np.full(500, 7.0), c, -q, a + b]), classes)


def odd_cells() -> Made:
    """Missing cells, headers in several scripts, a column of notes; one sensor turns with the machine's make."""
    draw = _draw(11)
    x, make = draw.standard_normal((500, 5)), draw.choice(["Pumpe A", "Pumpe B", 'Bohrer "x"'], 500)
    faulty = x[:, 0] * np.where(make == "Pumpe A", 1, -1) + 0.4 * x[:, 1] ** 2 > 0.3
    rows: list[list[str]] = []
    for number in range(500):
        cells = [f"{cell:.4f}" for cell in x[number]] + [make[number], f"note {number}"]
        if draw.random() < 0.06:
            cells[draw.integers(0, 5)] = draw.choice(["", "?", "NA", "nan"])
        rows.append(cells)
    names = ["Druck [bar]", "température", "流量", '"a", b', "x 1", "Typ", "Notiz"]
    return names, rows, np.where(faulty, "Fehler, schwer", "in Ordnung").tolist()


def machines() -> Made:
    """Fourteen machines of 50 rows, each with offsets of its own; 75, 15 and 10 % of three classes."""
    draw = _draw(12)
    rows: list[list[str]] = []
    classes: list[str] = []
    for machine in range(14):
        offset, own = draw.normal(0, 0.8, 6), draw.choice(3, 50, p=[0.75, 0.15, 0.10])
        x = draw.standard_normal((50, 6)) + offset * [1, 1, 1, 0.2, 0.2, 0.2]
        x[own == 1, 3] += 2
        x[own == 2, 4] -= 2.2
        x[own == 2, 5] += x[own == 2, 3]
        rows += [[f"M {machine}", *(repr(float(cell)) for cell in row)] for row in x]
        classes += [("good", "worn", "broken")[each] for each in own]
    return ["unit_number", *(f"s{j}" for j in range(6))], rows, classes


def five_classes() -> Made:
    """Healthy and four kinds of faults around it, by products and differences; and a class of two rows."""
    x = _draw(13).uniform(0, 1, (900, 7))
    far, more = x[:, 0] * x[:, 1], x[:, 2] - x[:, 3]
    kinds = [far > 0.55, more > 0.55, more < -0.6, (x[:, 4] > 0.8) & (x[:, 5] > 0.5)]
    classes = np.select(kinds, [1, 2, 3, 4], 0).astype(object)
    classes[[5, 77]] = "seltsam"
    return _numbers(x, classes)


def saddle() -> Made:
    """Sign of the sum of two products of four sensors among nine."""
    draw = _draw(14)
    x = draw.standard_normal((800, 9))
    return _numbers(x, (x[:, 0] * x[:, 1] + x[:, 2] * x[:, 3] + 0.3 * draw.standard_normal(800) > 0).astype(int))


def heavy_regression() -> Made:
    """A target of some 1e6 from lognormal sensors, noise of Student's t."""
    draw = _draw(15)
    x = np.exp(draw.standard_normal((500, 6)))
    y = 1e6 * np.log1p(x[:, 0]) * np.sqrt(x[:, 1]) + 2e5 * x[:, 2] / (1 + x[:, 3]) + 1e5 * draw.standard_t(3, 500)
    return _numbers(x, y)


TABLES: tuple[Callable[[], Made], ...] = (
    faults_4pct, five_classes, friedman1, friedman2, friedman3, gaussian_quantiles, heavy_regression, heavy_tails,
    label_noise, machines, moons_noise, odd_cells, saddle, units, vibration,
)


def write(folder: Path) -> list[Path]:
    """Write every table as a CSV file; the files."""
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for make in TABLES:
        names, rows, labels = make()
        path = folder / f"{make.__name__}.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            out = csv.writer(file)
            out.writerow([*names, "label"])
            out.writerows([*row, label] for row, label in zip(rows, labels, strict=True))
        found.append(path)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.accuracy.made", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the tables go")
    for each in write(parser.parse_args().folder):
        print(each)
