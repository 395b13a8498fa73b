"""A version as one self-contained C99 header: constant arrays, no memory of its own, nothing but ``math.h``.

Names of functions come from the model's name, made safe, so headers of several models go into one program: no name here
but a function's ends as one does (a model ``pump-test`` beside ``pump``). Texts of a contract stand in the file as
string literals and never as code. Numbers are written so that they are read back bit for bit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from models.basics import FloatArray
from models.features.fourier import FourierLift
from models.features.nystrom import NystromLift
from models.features.products import ProductLift
from models.features.spline import SplineLift
from services.contracts.model_version import ModelVersion
from services.exporting.plain_model import PlainModel

TOLERANCES = {"double": "1e-10", "float": "1e-3"}
"""Distance, relative to 1 and the answer, up to which the self test takes an answer for the same: another compiler may
round a sum or a sine otherwise."""

LONGEST = 500
"""Characters of a text that are kept: a C99 compiler need not take a literal of more than 4095 bytes."""


def c99_header(version: ModelVersion, *, single: bool = False) -> str:
    """Text of the header; ``single``: numbers of type float in place of double."""
    return _Header(PlainModel(version), single).text()


def identifier(text: str) -> str:
    """A text as a part of a C identifier: letters and digits of ASCII, anything else an underscore."""
    return re.sub(r"[^A-Za-z0-9]", "_", text)


def literal(text: str) -> str:
    """A text as a C string literal of printable ASCII: octal escapes of its UTF-8 bytes for everything else.

    An octal escape has three digits at most, so no character after it is taken in; ``?`` is escaped against trigraphs.
    """
    safe = {byte for byte in range(0x20, 0x7F)} - set(b'"\\?')
    return '"' + "".join(chr(byte) if byte in safe else f"\\{byte:03o}" for byte in text[:LONGEST].encode()) + '"'


class _Header:
    def __init__(self, model: PlainModel, single: bool) -> None:
        self._model, self._type, self._end = model, "float" if single else "double", "f" if single else ""
        version = model.version
        self._name = f"ballast_{identifier(version.name)}"
        self._upper = self._name.upper()

    def text(self) -> str:
        model, version, upper = self._model, self._model.version, self._upper
        size, n_features = len(model.weights), len(model.features)
        this = f"{upper}_H_OF_{identifier(version.version)}_{self._type.upper()}"
        kinds = version.asset_type
        about = [
            (f"{upper}_MODEL", version.name), (f"{upper}_VERSION", version.version), (f"{upper}_RUN", version.run_id),
            (f"{upper}_ASSET_TYPE", kinds.name), (f"{upper}_CONTRACT_SHA256", kinds.fingerprint),
        ]
        if model.target is not None:
            about += [(f"{upper}_TARGET", model.target.name), (f"{upper}_TARGET_UNIT", model.target.unit)]
        lines = [
            "/* A model version as plain C99, made by Ballast. Features in the order of ..._feature_names, in the",
            "   units of ..._feature_units; NAN for an optional one that is missing. What is outside its range is",
            f"   clipped to it. Begin with {upper}_self_test(). */",
            f"#ifndef {upper}_H", f"#define {upper}_H", f"#define {this}", "",
            "#if (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) || defined(_M_FP_FAST)",
            '#error "NAN says that a value is missing: compile without -ffast-math (-ffinite-math-only)"',
            "#endif", "", "#include <math.h>", "",
            *(f"#define {key} {literal(value)}" for key, value in about),
            f"#define {upper}_FEATURES {n_features}", f"#define {upper}_OUTPUTS {size}", "",
            self._texts("feature_names", (feature.name for feature in model.features)),
            self._texts("feature_units", (feature.unit for feature in model.features)),
        ]
        if model.target is None:
            lines.append(self._texts("class_names", model.classes))
            lines.append(self._integers("severities", [fault.severity for fault in kinds.fault_classes]))
        lines += [
            self._numbers("low", model.low), self._numbers("high", model.high),
            self._numbers("start", model.start), self._numbers("width", model.width),
            *([self._integers("is_log", model.is_log.astype(int).tolist())] if model.is_log.any() else []),
            self._numbers("middle", model.middle), self._numbers("weights", model.weights),
            *self._scores(), *self._answer(), *self._self_test(),
            f"#elif !defined({this})", f'#error "another version of {identifier(version.name)} is included already"',
            f"#endif /* {upper}_H */", "",
        ]
        return "\n".join(lines)

    def _scores(self) -> list[str]:
        """Function of the scores (of a target: of the scaled estimate)."""
        model, name, upper, kind = self._model, self._name, self._upper, self._type
        n_seen = model.weights.shape[1] - 1
        constants, code = self._lift()
        return [
            *constants, "",
            "/* Scores of values in their units. */",
            f"static inline void {name}_scores(const {kind} values[{upper}_FEATURES], {kind} scores[{upper}_OUTPUTS])",
            "{",
            f"    {kind} x[{upper}_FEATURES];", f"    {kind} z[{n_seen}];", "    int i, k;",
            f"    for (i = 0; i < {upper}_FEATURES; ++i) {{",
            f"        {kind} value = isnan(values[i]) ? {name}_middle[i] : values[i];",
            f"        if (value < {name}_low[i]) value = {name}_low[i];",
            f"        if (value > {name}_high[i]) value = {name}_high[i];",
            *([f"        if ({name}_is_log[i]) value = log{self._end}(value);"] if model.is_log.any() else []),
            f"        x[i] = (value - {name}_start[i]) / {name}_width[i];",
            "    }", *code,
            f"    for (k = 0; k < {upper}_OUTPUTS; ++k) {{",
            f"        {kind} sum = {self._number(0.0)};",
            f"        for (i = 0; i < {n_seen}; ++i) sum += {name}_weights[k * {n_seen + 1} + i] * z[i];",
            f"        scores[k] = sum + {name}_weights[k * {n_seen + 1} + {n_seen}];",
            "    }", "}", "",
        ]

    def _lift(self) -> tuple[list[str], list[str]]:
        """Constants of the lift, and the lines that make z of x."""
        lift, name, upper, kind = self._model.lift, self._name, self._upper, self._type
        copy = f"    for (i = 0; i < {upper}_FEATURES; ++i) z[i] = x[i];"
        half, end = self._number(0.5), self._end
        if lift is None:
            return [], [copy]
        if isinstance(lift, SplineLift):
            s = lift.segments
            return [self._numbers("knots", lift.knots)], [
                f"    for (i = 0; i < {upper}_FEATURES; ++i)",
                f"        for (k = 0; k < {s}; ++k) {{",
                f"            const {kind} left = {name}_knots[i * {s + 1} + k];",
                f"            const {kind} right = {name}_knots[i * {s + 1} + k + 1];",
                "            const " + kind + " at = x[i] < left ? left : (x[i] > right ? right : x[i]);",
                f"            z[i * {s} + k] = at - left;",
                "        }",
            ]
        if isinstance(lift, ProductLift):
            pairs = [number for pair in lift.pairs for number in pair]
            return [self._integers("pairs", pairs)], [
                copy,
                f"    for (k = 0; k < {len(lift.pairs)}; ++k)",
                f"        z[{upper}_FEATURES + k] = {half} + {self._number(2.0)} * (x[{name}_pairs[2 * k]] - {half})",
                f"            * (x[{name}_pairs[2 * k + 1]] - {half});",
            ]
        start = f"{upper}_FEATURES + " if lift.keep_linear else ""
        linear = [copy] if lift.keep_linear else []
        if isinstance(lift, FourierLift):
            return [self._numbers("frequencies", lift.frequencies), self._numbers("phases", lift.phases)], [
                *linear,
                f"    for (k = 0; k < {len(lift.phases)}; ++k) {{",
                f"        {kind} angle = {self._number(0.0)};",
                f"        for (i = 0; i < {upper}_FEATURES; ++i)",
                f"            angle += (x[i] - {half}) * {name}_frequencies[k * {upper}_FEATURES + i];",
                f"        z[{start}k] = {half} + {half} * cos{end}(angle + {name}_phases[k]);",
                "    }",
            ]
        return self._nystrom(lift, linear, start)

    def _nystrom(self, lift: NystromLift, linear: list[str], start: str) -> tuple[list[str], list[str]]:
        name, upper, kind, n = self._name, self._upper, self._type, len(lift.points)
        half, nothing, one = self._number(0.5), self._number(0.0), self._number(1.0)
        return [self._numbers("points", lift.points), self._numbers("whitening", lift.whitening)], [
            *linear,
            "    {",
            f"        {kind} bumps[{n}];",
            f"        for (k = 0; k < {n}; ++k) {{",
            f"            {kind} square = {nothing};",
            f"            for (i = 0; i < {upper}_FEATURES; ++i) {{",
            f"                const {kind} away = x[i] - {name}_points[k * {upper}_FEATURES + i];",
            "                square += away * away;",
            "            }",
            f"            bumps[k] = exp{self._end}({self._number(-0.5)} * square / "
            f"{self._number(lift.bandwidth**2)});",
            "        }",
            f"        for (k = 0; k < {n}; ++k) {{",
            f"            {kind} at = {nothing};",
            f"            for (i = 0; i < {n}; ++i) at += bumps[i] * {name}_whitening[i * {n} + k];",
            f"            at = {half} + {half} * at;",
            f"            z[{start}k] = at < {nothing} ? {nothing} : (at > {one} ? {one} : at);",
            "        }",
            "    }",
        ]

    def _answer(self) -> list[str]:
        name, upper, kind, target = self._name, self._upper, self._type, self._model.target
        if target is None:
            return [
                "/* Number of the class with the highest score, for ..._class_names and ..._severities; -1 where a",
                "   required feature is missing. */",
                f"static inline int {name}_class(const {kind} values[{upper}_FEATURES])", "{",
                f"    {kind} scores[{upper}_OUTPUTS];", "    int k, best = 0;",
                f"    {name}_scores(values, scores);",
                f"    for (k = 0; k < {upper}_OUTPUTS; ++k) {{", "        if (isnan(scores[k])) return -1;",
                "        if (scores[k] > scores[best]) best = k;", "    }", "    return best;", "}", "",
            ]
        low, high, width = (self._number(number) for number in (target.low, target.high, target.width))
        return [
            f"/* Estimate in {upper}_TARGET_UNIT, cut to its range; NAN where a required feature is missing. */",
            f"static inline {kind} {name}_estimate(const {kind} values[{upper}_FEATURES])", "{",
            f"    {kind} scores[{upper}_OUTPUTS];", f"    {kind} found;",
            f"    {name}_scores(values, scores);",
            f"    found = {low} + {width} * scores[0];",
            f"    if (found < {low}) found = {low};", f"    if (found > {high}) found = {high};",
            "    return found;", "}", "",
        ]

    def _self_test(self) -> list[str]:
        name, upper, kind, model = self._name, self._upper, self._type, self._model
        vectors = model.test_vectors()
        n, within = len(vectors.values), f"{TOLERANCES[kind]}{self._end}"
        near = f"fabs{self._end}(found - {name}_test_answers[v * {upper}_OUTPUTS + k])"
        size = f"fabs{self._end}({name}_test_answers[v * {upper}_OUTPUTS + k])"
        if model.target is None:
            found = [f"            const {kind} found = scores[k];"]
            begin = [f"        {kind} scores[{upper}_OUTPUTS];", f"        {name}_scores(values, scores);"]
        else:
            begin, found = [], [f"            const {kind} found = {name}_estimate(values);"]
        return [
            self._numbers("test_values", vectors.values), self._numbers("test_answers", vectors.scores),
            f"/* 0 where all {n} test vectors are answered as the version answers them, else the number, from 1, of",
            "   the first that is not. */",
            f"static inline int {upper}_self_test(void)", "{", "    int v, k;",
            f"    for (v = 0; v < {n}; ++v) {{",
            f"        const {kind} *values = {name}_test_values + v * {upper}_FEATURES;", *begin,
            f"        for (k = 0; k < {upper}_OUTPUTS; ++k) {{", *found,
            f"            if (!({near} <= {within} * ({self._number(1.0)} + {size}))) return v + 1;",
            "        }", "    }", "    return 0;", "}", "",
        ]

    def _number(self, value: float) -> str:
        if np.isnan(value):
            return "NAN"
        if self._type == "float":
            text = repr(float(np.float32(value))) if abs(value) < float(np.finfo(np.float32).max) else "0"
            return f"{np.format_float_scientific(np.float32(text), unique=True)}f"
        return repr(float(value))

    def _numbers(self, name: str, values: FloatArray) -> str:
        flat = values.ravel().tolist()
        rows = [", ".join(self._number(value) for value in flat[at : at + 6]) for at in range(0, len(flat), 6)]
        return f"static const {self._type} {self._name}_{name}[{len(flat)}] = {{\n    " + ",\n    ".join(rows) + "\n};"

    def _integers(self, name: str, values: list[int]) -> str:
        return f"static const int {self._name}_{name}[{len(values)}] = {{{', '.join(str(each) for each in values)}}};"

    def _texts(self, name: str, values: Iterable[str]) -> str:
        texts = [literal(value) for value in values]
        return f"static const char *const {self._name}_{name}[{len(texts)}] = {{\n    " + ",\n    ".join(texts) + "\n};"
