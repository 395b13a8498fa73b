"""The folder of a model version as MLflow stores it: a JSON document, the code that serves it, what it needs."""

from __future__ import annotations

import hashlib
import json
import threading
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

from services.contracts.errors import ConflictError
from services.contracts.machines.value_range import Ranges
from services.contracts.versions.model_version import ModelVersion
from services.process.private_files import FILE_MODE
from services.registry.labels import units

DOCUMENT = "model.json"
CODE = Path(__file__).with_name("pyfunc_model.py")
_SAVING = threading.Lock()
"""MLflow hands a models-from-code object over in a global of its own."""


def document_text(version: ModelVersion) -> str:
    """The version as JSON, floats in their shortest exact form."""
    return json.dumps(version.to_document(), indent=1, allow_nan=False) + "\n"


def sha256(text: str) -> str:
    """Digest that a version's label carries."""
    return hashlib.sha256(text.encode()).hexdigest()


def read_document(text: str, digest: str, where: str) -> ModelVersion:
    """Version from its document; :class:`ConflictError` when it is not the one that was registered."""
    if sha256(text) != digest:
        raise ConflictError(f"{where} was changed since it was registered: its digest is another")
    return ModelVersion.from_document(json.loads(text))


def write_model(folder: Path, scratch: Path, version: ModelVersion, text: str, identity: dict[str, Any]) -> None:
    """Write the MLflow model of a version into ``folder``.

    ``identity`` are MLflow's own keys (``artifact_path``, ``run_id``, ``model_id``). Nothing is pickled, and no path of
    this machine and no code of Ballast's other than the serving file gets into the folder.
    """
    import mlflow.pyfunc
    import pandas as pd
    from mlflow.models import Model

    document = scratch / DOCUMENT
    document.write_text(text, encoding="utf-8")
    features = version.asset_type.features
    example = pd.DataFrame([Ranges(features).middle], columns=list(version.asset_type.feature_names))
    told = {"units": units(version), "run_id": version.run_id, "plan": version.plan}
    description = Model(metadata=told, **identity)
    with _SAVING:
        mlflow.pyfunc.save_model(
            path=folder,
            mlflow_model=description,
            python_model=str(CODE),
            artifacts={"model": str(document)},
            signature=_signature(version),
            input_example=example,
            pip_requirements=[f"{package}=={installed(package)}" for package in ("mlflow", "numpy", "pandas")],
        )
    flavour = description.flavors["python_function"]
    flavour["model_code_path"] = CODE.name
    flavour["artifacts"]["model"]["uri"] = DOCUMENT
    description.save(str(folder / "MLmodel"))
    (folder / CODE.name).chmod(FILE_MODE)  # a copy, which took the mode of the installed file whatever the umask


def _signature(version: ModelVersion) -> Any:
    from mlflow.models import ModelSignature
    from mlflow.types import DataType
    from mlflow.types.schema import AnyType, ColSpec, Map, Schema

    # Not "double": MLflow refuses columns of whole numbers for it. The serving code checks what stands in a column.
    inputs = [ColSpec(AnyType(), feature.name, required=feature.required) for feature in version.asset_type.features]
    if version.task == "regression":
        outputs = [ColSpec("double", "value"), ColSpec("string", "unit"), ColSpec(Map(DataType.double), "interval")]
        return ModelSignature(inputs=Schema(inputs), outputs=Schema(outputs))
    outputs = [
        ColSpec("string", "fault_class"),
        ColSpec("long", "severity"),
        ColSpec(Map(DataType.double), "scores"),
        ColSpec("double", "robustness_radius", required=False),
    ]
    return ModelSignature(inputs=Schema(inputs), outputs=Schema(outputs))
