"""The certificate file of a trained model: written only where it proves what the version claims."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np

from models.cuts.carried_proof import CarriedProof
from services.contracts.errors import BallastError
from services.contracts.model_version import ModelVersion
from services.contracts.signed_documents import signature_of
from services.contracts.signing import public_key
from services.verification.certificate_file import CertificateFile, Head, write_certificate
from services.verification.proof import verify
from services.verification.version import CERTIFICATE, certificate_digest

LOG = logging.getLogger("ballast.flows")


def certificate_file(version: ModelVersion, proofs: tuple[CarriedProof, ...]) -> bytes | None:
    """Bytes of the file; None, with a line in the log, where cuts do not prove the version's bounds.

    That is so for methods whose bounds are of something else than the risk of the worst mixture of the sites.
    """
    if not proofs or len(proofs) != version.weights.shape[0]:
        LOG.info("run %s leaves no certificate file: %s has no cuts that prove its bounds", version.run_id,
                 version.method)
        return None
    certificate = _certificate(version, proofs)
    try:
        verify(certificate)
    except BallastError as error:
        LOG.info("run %s leaves no certificate file: %s", version.run_id, error)
        return None
    return write_certificate(certificate)


def carried(
    draft: ModelVersion, proofs: tuple[CarriedProof, ...], seed_file: Path
) -> tuple[ModelVersion, dict[str, bytes]]:
    """The version signed by the coordinator's key, its certificate file named in it; and the file, by name."""
    data = certificate_file(draft, proofs)
    digest = "" if data is None else certificate_digest(data)
    draft = draft.model_copy(update={"certificate_sha256": digest, "signed_by": public_key(seed_file)})
    signed = draft.model_copy(update={"signature": signature_of(draft.to_document(), seed_file)})
    return signed, {} if data is None else {CERTIFICATE: data}


def _certificate(version: ModelVersion, proofs: tuple[CarriedProof, ...]) -> CertificateFile:
    shared, loss = version.spec.label_flip_cost, version.spec.loss.loss
    costs = [shared if site.label_flip_cost is None else site.label_flip_cost for site in version.sites]
    return CertificateFile(
        run_id=version.run_id, site_ids=tuple(site.site_id for site in version.sites),
        site_weights=np.array([site.weight for site in version.sites]),
        radii=np.array([site.radius for site in version.sites]), label_flip_costs=np.array(costs),
        lipschitz=float(min(loss.lipschitz, 1e100)), transport_norm=version.spec.transport_norm,
        fit_intercept=version.spec.fit_intercept, mixture_norm=proofs[0].ball.norm,
        mixture_radius=float(proofs[0].ball.radius), heads=tuple(_head(proof) for proof in proofs),
        upper=version.objective, lower=version.lower_bound, gap=version.certified_gap,
    )


def _head(proof: CarriedProof) -> Head:
    return Head(
        weights=proof.weights, risks=proof.risks, mixture=proof.mixture, site=proof.site, offset=proof.offset,
        slope=proof.slope, norm_weight=proof.norm_weight, swing=proof.swing, multipliers=proof.multipliers,
        around=proof.around, upper=proof.upper, lower=proof.lower,
    )
