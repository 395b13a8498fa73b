"""An export through HTTP and at the host is the version's, and is noted."""

from __future__ import annotations

import hashlib
import io
import json
from typing import Any
from zipfile import ZipFile

import onnx

from services.contracts.access.identity import Role
from services.exporting.c99_header import c99_header

PATH = "/v1/models/pumps/versions/{}/export?format={}"


def test_exports_are_files_of_the_version_and_each_is_in_the_audit_trail(world: Any) -> None:
    header = world.call(Role.OPERATOR, "GET", PATH.format("champion", "c99"))
    version = world.backend.registry.get("pumps", "1")
    assert header.text == c99_header(version)
    assert header.headers["content-disposition"] == 'attachment; filename="pumps-1.h"'
    assert header.headers["content-type"] == "text/x-c; charset=utf-8"
    model = world.call(Role.OPERATOR, "GET", PATH.format("1", "onnx") + "&precision=float")
    onnx.checker.check_model(loaded := onnx.load_from_string(model.content))
    assert loaded.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    newest, before = world.backend.store.audit.list_events(action="model.export", limit=2)
    assert (newest.target, newest.after["version"]) == ("model:pumps", "1")
    assert newest.after["sha256"] == hashlib.sha256(model.content).hexdigest()
    assert (before.after["format"], before.after["precision"]) == ("c99", "double")


def test_a_bundle_to_check_a_version_has_its_weights_and_is_in_the_audit_trail_as_an_export_is(world: Any) -> None:
    bundle = "/v1/models/pumps/versions/{}/certificate.zip"
    given = world.call(Role.ENGINEER, "GET", bundle.format("champion"))
    with ZipFile(io.BytesIO(given.content)) as archive:
        assert json.loads(archive.read("model.json"))["weights"]
    (noted,) = world.backend.store.audit.list_events(action="model.certificate")
    assert (noted.target, noted.role, "the engineer" in noted.actor) == ("model:pumps", Role.ENGINEER, True)
    assert noted.after == {"version": "1", "file": "pumps.zip", "sha256": hashlib.sha256(given.content).hexdigest()}
    assert world.call(Role.VIEWER, "GET", bundle.format("1")).status_code == 403
    assert world.call(Role.ENGINEER, "GET", bundle.format("17")).status_code == 404
    assert world.call(Role.ENGINEER, "GET", "/v1/models/pumps/versions/1/certificate").status_code == 404
    assert world.events() == ["model.certificate"]


def test_what_is_not_there_is_refused_and_not_noted(world: Any) -> None:
    for path, status in ((PATH.format("17", "c99"), 404), (PATH.format("1", "pmml"), 422)):
        assert world.call(Role.OPERATOR, "GET", path).status_code == status
    assert world.call(Role.VIEWER, "GET", PATH.format("1", "c99")).status_code == 403
    assert "model.export" not in world.events()
