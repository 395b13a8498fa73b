"""A version as one self-contained C99 header: constant arrays, no memory of its own, nothing but ``math.h``.

Names of functions come from the model's name, made safe, so headers of several models go into one program: no name here
but a function's ends as one does (a model ``pump-test`` beside ``pump``).
"""

from __future__ import annotations

from services.contracts.versions.model_version import ModelVersion
from services.exporting.c99_inputs import inputs
from services.exporting.c99_text import C99Writer, identifier, literal
from services.exporting.plain_model import PlainModel

TOLERANCES = {"double": "1e-10", "float": "1e-3"}
"""Distance, relative to 1 and the answer, up to which the self test takes an answer for the same: another compiler may
round a sum or a sine otherwise."""


def c99_header(version: ModelVersion, *, single: bool = False) -> str:
    """Text of the header; ``single``: numbers of type float in place of double."""
    return _Header(PlainModel(version, single=single), single).text()


class _Header:
    def __init__(self, model: PlainModel, single: bool) -> None:
        self._model, self._write = model, C99Writer(model.version.name, single=single)
        self._name, self._upper, self._type = self._write.name, self._write.upper, self._write.kind

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
            self._write.texts("feature_names", (feature.name for feature in model.features)),
            self._write.texts("feature_units", (feature.unit for feature in model.features)),
        ]
        if model.target is None:
            lines.append(self._write.texts("class_names", model.classes))
            lines.append(self._write.integers("severities", [fault.severity for fault in kinds.fault_classes]))
        lines += [
            self._write.numbers("low", model.low), self._write.numbers("high", model.high),
            self._write.numbers("start", model.start), self._write.numbers("width", model.width),
            *([self._write.integers("is_log", model.is_log.astype(int).tolist())] if model.is_log.any() else []),
            self._write.numbers("middle", model.middle), self._write.numbers("weights", model.weights),
            *self._scores(), *self._answer(), *self._self_test(),
            f"#elif !defined({this})", f'#error "another version of {identifier(version.name)} is included already"',
            f"#endif /* {upper}_H */", "",
        ]
        return "\n".join(lines)

    def _scores(self) -> list[str]:
        """Function of the scores (of a target: of the scaled estimate)."""
        model, name, upper, kind = self._model, self._name, self._upper, self._type
        n_seen = model.weights.shape[1] - 1
        constants, code = inputs(model, self._write)
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
            *([f"        if ({name}_is_log[i]) value = log{self._write.end}(value);"] if model.is_log.any() else []),
            f"        x[i] = (value - {name}_start[i]) / {name}_width[i];",
            "    }", *code,
            f"    for (k = 0; k < {upper}_OUTPUTS; ++k) {{",
            f"        {kind} sum = {self._write.number(0.0)};",
            f"        for (i = 0; i < {n_seen}; ++i) sum += {name}_weights[k * {n_seen + 1} + i] * z[i];",
            f"        scores[k] = sum + {name}_weights[k * {n_seen + 1} + {n_seen}];",
            "    }", "}", "",
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
        low, high, width = (self._write.number(number) for number in (target.low, target.high, target.width))
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
        n, within = len(vectors.values), f"{TOLERANCES[kind]}{self._write.end}"
        near = f"fabs{self._write.end}(found - {name}_test_answers[v * {upper}_OUTPUTS + k])"
        size = f"fabs{self._write.end}({name}_test_answers[v * {upper}_OUTPUTS + k])"
        if model.target is None:
            found = [f"            const {kind} found = scores[k];"]
            begin = [f"        {kind} scores[{upper}_OUTPUTS];", f"        {name}_scores(values, scores);"]
        else:
            begin, found = [], [f"            const {kind} found = {name}_estimate(values);"]
        return [
            self._write.numbers("test_values", vectors.values), self._write.numbers("test_answers", vectors.scores),
            f"/* 0 where all {n} test vectors are answered as the version answers them, else the number, from 1, of",
            "   the first that is not. */",
            f"static inline int {upper}_self_test(void)", "{", "    int v, k;",
            f"    for (v = 0; v < {n}; ++v) {{",
            f"        const {kind} *values = {name}_test_values + v * {upper}_FEATURES;", *begin,
            f"        for (k = 0; k < {upper}_OUTPUTS; ++k) {{", *found,
            f"            if (!({near} <= {within} * ({self._write.number(1.0)} + {size}))) return v + 1;",
            "        }", "    }", "    return 0;", "}", "",
        ]
