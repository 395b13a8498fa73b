"""The intercept is the one weight that a certificate's norm leaves out, and only where the version has one."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from services.contracts.errors import InvalidInputError
from services.contracts.wire.codec import digest
from services.verification.bounds import lower_bound
from services.verification.certificate_file import CertificateFile, read_certificate, write_certificate
from services.verification.proof import NotProvenError
from services.verification.version import verify_version
from tests.services.verification.drawn import RUN
from tests.services.verification.test_hostile_certificates import told


def one_cut(fit_intercept: Any) -> CertificateFile:
    """A risk of ``max(.5 + w_1, |w_0| / 10, 0)``, which is 0 at the best weights, and a claim next to nothing."""
    certificate, head = told(
        [(0, 0.5, [0.0, 1.0, 0.0], 0.1)], [1.0], shares=[1.0], fit_intercept=fit_intercept, radii=np.ones(1)
    )
    return replace(certificate, heads=(replace(head, risks=np.full(1, 0.5)),))


@pytest.mark.parametrize("value", [2, 1, 1.0, "true", None, [True]])
def test_how_many_weights_are_intercepts_is_no_number_of_the_file(value: Any) -> None:
    """Of two, the first would be met by no norm, and its slope by no charge: .5 would be proven of a least of 0."""
    for intercept in (False, True):
        certificate = one_cut(intercept)
        assert lower_bound(certificate, certificate.heads[0], 0.5) == 0.0
    with np.load(io.BytesIO(write_certificate(certificate))) as stored:
        arrays = dict(stored)
    header = json.loads(arrays["header"].tobytes()) | {"fit_intercept": value}
    data = io.BytesIO()
    np.savez(data, **arrays | {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)})
    with pytest.raises(InvalidInputError, match="certificate"):
        read_certificate(data.getvalue())


@pytest.mark.parametrize(("certified", "stated"), [(True, True), (False, False), (True, False), (False, True)])
def test_a_certificate_without_an_intercept_is_none_of_a_version_that_has_one(certified: bool, stated: bool) -> None:
    """What is proven of weights without one says nothing of those with one, also where the version's is 0."""
    certificate, _ = told(
        [(0, 0.5, [1.0, 0.0], 0.0), (0, 0.5, [-1.0, 0.0], 0.0)], [0.5, 0.5], shares=[1.0], fit_intercept=certified
    )
    data = write_certificate(certificate)
    document: dict[str, Any] = {
        "run_id": RUN, "certificate_sha256": digest(data), "objective": 1.0, "lower_bound": 0.0, "certified_gap": 1.0,
        "sites": [{"site_id": "plant-0", "weight": 1.0, "radius": 0.0}],
        "weights": [[0.0, 0.0]] if certified else [[0.0, 0.0, 0.0]],
        "spec": {"label_flip_cost": 1.0, "transport_norm": "l2", "fit_intercept": stated},
    }
    if certified == stated:
        assert verify_version(document, data, None)[0].fit_intercept == stated
    else:
        with pytest.raises(NotProvenError, match="not this version's: its intercept differ"):
            verify_version(document, data, None)
