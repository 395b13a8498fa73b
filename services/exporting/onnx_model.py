"""A version as an ONNX model: from raw sensor values to scores and the class, or to the estimate.

Input ``features`` (n, P), float64 or float32, in the contract's order and units, NaN where an optional one is missing.
Outputs ``scores`` (n, C) and ``class`` (n,) of strings, or ``estimate`` (n, 1) in the target's unit. Opset 18, standard
operators alone.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from models.features.fourier import FourierLift
from models.features.nystrom import NystromLift
from models.features.products import ProductLift
from models.features.spline import SplineLift
from services.contracts.errors import UnavailableError
from services.contracts.versions.model_version import ModelVersion
from services.exporting.plain_model import PlainModel

OPSET = 18  # old enough for the runtimes of small boxes
IR_VERSION = 8  # of ONNX 1.13, from which on runtimes know this opset
NO_CLASS = ""
"""In the place of a class where a required feature is missing: of scores that are NaN the first is the highest."""
NEEDED = "exporting ONNX needs the package onnx: pip install 'ballast-diagnosis[export]'"


class _Graph:
    """Nodes and constants as they are made; names are numbers, so nothing of a contract can be one."""

    def __init__(self, number: Any) -> None:
        from onnx import helper, numpy_helper

        self._helper, self._numpy = helper, numpy_helper
        self.number = number
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, values: Any, kind: Any = None) -> str:
        name = f"c{len(self.constants)}"
        array = np.asarray(values, dtype=kind or self.number)
        self.constants.append(self._numpy.from_array(np.ascontiguousarray(array).reshape(array.shape), name))
        return name

    def node(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        name = output or f"t{len(self.nodes)}"
        self.nodes.append(self._helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def clip(self, values: str, low: Any, high: Any) -> str:
        """Values between two arrays; the operator Clip takes numbers alone."""
        return self.node("Min", self.node("Max", values, self.constant(low)), self.constant(high))


def onnx_model(version: ModelVersion, *, single: bool = False) -> bytes:
    """The model's bytes; ``single``: float32 in place of float64, for runtimes that have no other.

    ``UnavailableError`` where the package ``onnx`` is not there.
    """
    try:
        from onnx import TensorProto, checker, helper
    except ImportError:
        raise UnavailableError(NEEDED, code="package_missing") from None
    model = PlainModel(version, single=single)
    graph = _Graph(np.float32 if single else np.float64)
    number = TensorProto.FLOAT if single else TensorProto.DOUBLE
    there = graph.node("Where", graph.node("IsNaN", "features"), graph.constant(model.middle[None]), "features")
    clipped = graph.clip(there, model.low, model.high)
    turned = _turned(graph, model, clipped)
    scaled = graph.node("Div", graph.node("Sub", turned, graph.constant(model.start)), graph.constant(model.width))
    seen = _lifted(graph, model, scaled)
    made = graph.node("MatMul", seen, graph.constant(model.weights[:, :-1].T))
    size = len(model.weights)
    if model.target is None:
        graph.node("Add", made, graph.constant(model.weights[:, -1]), output="scores")
        winner = graph.node("ArgMax", "scores", axis=1, keepdims=0)
        total = graph.node("ReduceSum", "scores", graph.constant([1], np.int64), keepdims=0)
        named = graph.node("Where", graph.node("IsNaN", total), graph.constant([size], np.int64), winner)
        texts = [name.encode() for name in (*model.classes, NO_CLASS)]
        graph.constants.append(helper.make_tensor("names", TensorProto.STRING, [size + 1], texts))
        graph.node("Gather", "names", named, output="class")
        outputs = [
            helper.make_tensor_value_info("scores", number, ["n", size]),
            helper.make_tensor_value_info("class", TensorProto.STRING, ["n"]),
        ]
    else:
        score = graph.node("Add", made, graph.constant(model.weights[:, -1]))
        grown = graph.node("Mul", score, graph.constant([model.target.width]))
        value = graph.node("Add", grown, graph.constant([model.target.low]))
        inside = graph.clip(value, [model.target.low], [model.target.high])
        graph.node("Identity", inside, output="estimate")
        outputs = [helper.make_tensor_value_info("estimate", number, ["n", 1])]
    features = helper.make_tensor_value_info("features", number, ["n", len(model.features)])
    body = helper.make_graph(graph.nodes, "ballast", [features], outputs, graph.constants)
    made_model = helper.make_model(
        body, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="ballast"
    )
    helper.set_model_props(made_model, _properties(version))
    checker.check_model(made_model, full_check=True)
    return bytes(made_model.SerializeToString(deterministic=True))


def _turned(graph: _Graph, model: PlainModel, clipped: str) -> str:
    """Values inside their ranges, by their logarithms where the contract scales so."""
    if not model.is_log.any():
        return clipped
    which = graph.constant(model.is_log, np.bool_)
    logarithms = graph.node("Log", graph.node("Where", which, clipped, graph.constant(1.0)))
    return graph.node("Where", which, logarithms, clipped)


def _properties(version: ModelVersion) -> dict[str, str]:
    """What the file says of itself."""
    kind, target = version.asset_type, version.asset_type.target
    told: dict[str, object] = {
        "model": version.name, "version": version.version, "run_id": version.run_id, "asset_type": kind.name,
        "contract_sha256": kind.fingerprint, "task": version.task,
        "features": [
            {"name": f.name, "unit": f.unit, "low": f.low, "high": f.high, **({"scale": "log"} if f.is_log else {})}
            for f in kind.features
        ],
    }
    if version.task == "regression" and target is not None:
        told["target"] = {"name": target.name, "unit": target.unit}
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in told.items()}
    return {f"ballast.{name}": text for name, text in texts.items()}


def _lifted(graph: _Graph, model: PlainModel, scaled: str) -> str:
    """What the planes see."""
    lift = model.lift
    if model.hidden is not None:
        inner, bias = model.hidden
        reached = graph.node("Add", graph.node("MatMul", scaled, graph.constant(inner.T)), graph.constant(bias))
        # Max and no Relu: runtimes have the first in float64 and not all the second. A NaN stays one in both.
        return graph.node("Max", reached, graph.constant([0.0]))
    if isinstance(lift, FourierLift):
        turned = graph.node("MatMul", graph.node("Sub", scaled, graph.constant([0.5])),
                            graph.constant(lift.frequencies.T))
        # sin(a + pi/2) in place of cos(a): runtimes have the sine in float64 and not all the cosine.
        angle = graph.node("Add", turned, graph.constant(lift.phases + np.pi / 2.0))
        found = _half(graph, graph.node("Sin", angle))
        return graph.node("Concat", scaled, found, axis=1) if lift.keep_linear else found
    if isinstance(lift, SplineLift):
        return _ramps(graph, lift, scaled)
    if isinstance(lift, ProductLift):
        centred = graph.node("Sub", scaled, graph.constant([0.5]))
        first, second = (
            graph.node("Gather", centred, graph.constant([pair[side] for pair in lift.pairs], np.int64), axis=1)
            for side in (0, 1)
        )
        twice = graph.node("Mul", graph.node("Mul", first, second), graph.constant([2.0]))
        alone = scaled if lift.spline is None else _ramps(graph, lift.spline, scaled)
        return graph.node("Concat", alone, graph.node("Add", twice, graph.constant([0.5])), axis=1)
    if isinstance(lift, NystromLift):
        return _nystrom(graph, lift, scaled)
    return scaled


def _ramps(graph: _Graph, lift: SplineLift, scaled: str) -> str:
    column = graph.node("Unsqueeze", scaled, graph.constant([2], np.int64))
    ramps = graph.clip(column, lift.knots[:, :-1], lift.knots[:, 1:])
    risen = graph.node("Sub", ramps, graph.constant(lift.knots[:, :-1]))
    return graph.node("Reshape", risen, graph.constant([-1, lift.n_outputs], np.int64))


def _nystrom(graph: _Graph, lift: NystromLift, scaled: str) -> str:
    column = graph.node("Unsqueeze", scaled, graph.constant([1], np.int64))
    away = graph.node("Sub", column, graph.constant(lift.points[None]))
    squares = graph.node("ReduceSum", graph.node("Mul", away, away), graph.constant([2], np.int64), keepdims=0)
    kernel = graph.node("Exp", graph.node("Mul", squares, graph.constant([-0.5 / lift.bandwidth**2])))
    bumps = _half(graph, graph.node("MatMul", kernel, graph.constant(lift.whitening)))
    inside = graph.clip(bumps, [0.0], [1.0])
    return graph.node("Concat", scaled, inside, axis=1) if lift.keep_linear else inside


def _half(graph: _Graph, values: str) -> str:
    """``1/2 + values / 2``."""
    return graph.node("Add", graph.node("Mul", values, graph.constant([0.5])), graph.constant([0.5]))
