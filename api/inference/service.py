"""Tensors to samples, and predictions to tensors."""

from __future__ import annotations

import math
from itertools import chain

import numpy as np

from api.inference.schemas import InferRequest, InferResponse, InputTensor, OutputTensor, TensorFacts
from models.basics import FloatArray
from services.contracts.errors import InvalidInputError
from services.contracts.evaluation.diagnosis import MOST_SAMPLES, DiagnoseRequest
from services.contracts.evaluation.estimate import EstimateRequest
from services.predictor.cache import Served
from services.predictor.predictor import Predictor
from services.predictor.samples import Batch

FEATURES = "features"


def inputs(served: Served) -> tuple[TensorFacts, ...]:
    """The one tensor of a version's input; a tensor for each feature, by its name, is taken too."""
    return (TensorFacts(name=FEATURES, datatype="FP64", shape=(-1, len(served.version.asset_type.features))),)


def outputs(served: Served) -> tuple[TensorFacts, ...]:
    """The tensors of a version's answer."""
    if isinstance(served, Predictor):
        n_classes = len(served.version.asset_type.class_names)
        return (
            TensorFacts(name="class", datatype="BYTES", shape=(-1,)),
            TensorFacts(name="scores", datatype="FP64", shape=(-1, n_classes)),
        )
    return (TensorFacts(name="estimate", datatype="FP64", shape=(-1,)),)


def infer(served: Served, name: str, asked: InferRequest) -> InferResponse:
    """Answer to a request; ``InvalidInputError`` with one line where a tensor does not fit the contract."""
    _refuse_passed_over(served, name, asked)
    known = {tensor.name for tensor in outputs(served)}
    wanted = {tensor.name for tensor in asked.outputs} if asked.outputs else known  # none named: all, as for none sent
    if not wanted <= known:
        unknown, there = sorted(wanted - known)[0], ", ".join(sorted(known))
        raise InvalidInputError(f"the model has no output {unknown!r}; it has {there}")
    batch = _batch(served, asked.inputs)
    n = len(batch.values)
    made: list[OutputTensor] = []
    if isinstance(served, Predictor):
        scores, names = served.class_scores(batch), served.version.asset_type.class_names
        told = [names[k] for k in scores.argmax(axis=1).tolist()]
        made = [
            OutputTensor(name="class", datatype="BYTES", shape=(n,), data=told),
            OutputTensor(name="scores", datatype="FP64", shape=scores.shape, data=scores.ravel().tolist()),
        ]
    else:
        made = [OutputTensor(name="estimate", datatype="FP64", shape=(n,), data=served.values(batch).tolist())]
    chosen = tuple(tensor for tensor in made if tensor.name in wanted)
    return InferResponse(model_name=name, model_version=served.version.version, id=asked.id, outputs=chosen)


def _refuse_passed_over(served: Served, name: str, asked: InferRequest) -> None:
    """Refuse a parameter that would change a diagnosis or an estimate, and has no say in the protocol's answer."""
    kind, verb = (DiagnoseRequest, "diagnose") if isinstance(served, Predictor) else (EstimateRequest, "estimate")
    said = sorted(asked.parameters.keys() & kind.model_fields.keys())
    if said:
        raise InvalidInputError(f"an answer here has no {said[0]}: ask /v1/models/{name}/{verb}, which takes one")


def _batch(served: Served, tensors: tuple[InputTensor, ...]) -> Batch:
    names = served.version.asset_type.feature_names
    if len(tensors) == 1 and tensors[0].name == FEATURES and (len(tensors[0].shape) == 2 or FEATURES not in names):
        values = _numbers(tensors[0])
        if values.shape[1:] != (len(names),):
            raise InvalidInputError(f"tensor {FEATURES} must have the shape (n, {len(names)}), got {values.shape}")
        return served.batch(values)
    columns: dict[str, FloatArray] = {}
    for tensor in tensors:
        if tensor.name in columns:
            raise InvalidInputError(f"tensor {tensor.name!r} is there twice")
        columns[tensor.name] = _numbers(tensor).reshape(-1)
        if len(tensor.shape) == 2 and tensor.shape[1] != 1:
            raise InvalidInputError(
                f"tensor {tensor.name!r} must have the shape (n,); for all features together send one tensor {FEATURES}"
            )
    lengths = {len(column) for column in columns.values()}
    if len(lengths) != 1:
        raise InvalidInputError(f"the tensors must have one length, got {', '.join(map(str, sorted(lengths)))}")
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return served.read([dict(zip(columns, row, strict=True)) for row in rows])


def _numbers(tensor: InputTensor) -> FloatArray:
    """Array of a tensor; refuses what is no number, and a shape that its data has not."""
    shape, data = tensor.shape, tensor.data
    if shape[0] < 1 or min(shape) < 1 or shape[0] > MOST_SAMPLES:
        raise InvalidInputError(f"tensor {tensor.name!r} must be of 1 to {MOST_SAMPLES} samples, got the shape {shape}")
    if any(type(row) is list for row in data):
        if len(shape) != 2 or not all(type(row) is list and len(row) == shape[1] for row in data):
            raise InvalidInputError(f"the data of tensor {tensor.name!r} is not nested as its shape {shape} says")
        data = list(chain.from_iterable(data))
    if not set(map(type, data)) <= {float, int}:
        raise InvalidInputError(f"the data of tensor {tensor.name!r} must be numbers")
    if len(data) != math.prod(shape):
        raise InvalidInputError(f"tensor {tensor.name!r} of the shape {shape} has {len(data)} numbers")
    try:
        values = np.array(data, dtype=np.float64).reshape(shape)
    except OverflowError:
        raise InvalidInputError(f"the data of tensor {tensor.name!r} must be finite numbers") from None
    if tensor.datatype == "FP32":
        with np.errstate(over="ignore"):
            values = values.astype(np.float32).astype(np.float64)
        if not np.isfinite(values).all():
            raise InvalidInputError(f"the data of tensor {tensor.name!r} must be numbers of FP32")
    return values
