from __future__ import annotations

import logging
import os
import subprocess
import sys

import pytest

from services.registry.mlflow_environment import QUIET, mlflow_environment, silence_mlflow


def test_what_the_operator_has_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in QUIET:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "7")
    silence_mlflow()
    found = mlflow_environment()
    assert found["MLFLOW_DISABLE_TELEMETRY"] == "true"
    assert found["MLFLOW_HTTP_REQUEST_TIMEOUT"] == "7"
    assert not logging.getLogger("mlflow.store.db.utils").isEnabledFor(logging.ERROR), "stacks of three libraries"


def test_a_child_has_it_all_where_this_process_has_it_not(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in QUIET:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OF_THE_OPERATOR", "here")
    assert QUIET.items() <= mlflow_environment().items() and mlflow_environment()["OF_THE_OPERATOR"] == "here"
    assert not set(QUIET) & set(os.environ)


def test_mlflow_takes_it_for_telemetry_off_and_is_not_imported_before_it_is_needed() -> None:
    code = (
        "import sys\n"
        "from services.registry.mlflow_registry import ModelRegistry\n"
        "ModelRegistry('sqlite:///never-made.db')\n"
        "assert 'mlflow' not in sys.modules and 'pandas' not in sys.modules\n"
        "from services.registry.mlflow_environment import silence_mlflow\n"
        "silence_mlflow()\n"
        "from mlflow.telemetry.utils import is_telemetry_disabled\n"
        "print(is_telemetry_disabled())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "True", done.stderr
