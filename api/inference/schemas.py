"""What the Open Inference Protocol (version 2, REST) takes and gives. Members that a client adds are left aside."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Dimension = Annotated[int, Field(strict=True)]
"""A JSON integer: a text or a truth value is refused, never guessed at."""


class ProtocolPart(BaseModel):
    """A part of a message."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class TensorFacts(ProtocolPart):
    """A tensor of a model; -1 in its shape: any number of samples."""

    name: str
    datatype: Literal["FP64", "FP32", "BYTES"]
    shape: tuple[int, ...]


class InputTensor(ProtocolPart):
    """A tensor that is sent: numbers in row-major order, flat or nested as its shape says."""

    name: str = Field(max_length=100)
    shape: tuple[Dimension, ...] = Field(min_length=1, max_length=2)
    datatype: Literal["FP64", "FP32"]
    data: list[Any]


class WantedOutput(ProtocolPart):
    """A tensor that is asked for."""

    name: str = Field(max_length=100)


class InferRequest(ProtocolPart):
    """One tensor ``features`` (n, P) in the contract's order, or a tensor (n,) for each feature, by its name."""

    id: str | None = Field(default=None, max_length=200)
    inputs: tuple[InputTensor, ...] = Field(min_length=1, max_length=5000)
    outputs: tuple[WantedOutput, ...] | None = None
    parameters: dict[str, Any] = Field(default_factory=dict, description="left aside; refused: those of `/v1`")


class OutputTensor(TensorFacts):
    """A tensor of an answer, its data flat."""

    data: list[float] | list[str]


class InferResponse(ProtocolPart):
    """The answer to all samples; ``id`` is the request's."""

    model_name: str
    model_version: str
    id: str | None = None
    outputs: tuple[OutputTensor, ...]


class ModelMetadata(ProtocolPart):
    """A model, and the tensors that it takes and gives."""

    name: str
    versions: tuple[str, ...]
    platform: str = "ballast"
    inputs: tuple[TensorFacts, ...]
    outputs: tuple[TensorFacts, ...]


class ModelReady(ProtocolPart):
    """Whether a version can answer."""

    name: str
    ready: bool


class ServerLive(ProtocolPart):
    """The process answers."""

    live: bool


class ServerReady(ProtocolPart):
    """Whether everything that is needed answers."""

    ready: bool


class ServerMetadata(ProtocolPart):
    """The server."""

    name: str = "ballast"
    version: str
    extensions: tuple[str, ...] = ()
