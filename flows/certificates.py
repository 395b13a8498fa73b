"""The certificate file of a trained model: written only where it proves what the version claims."""

from __future__ import annotations

import logging

import numpy as np

from models.cuts.carried_proof import CarriedProof
from services.contracts.errors import BallastError
from services.contracts.model_version import ModelVersion
from services.verification.certificate_file import CertificateFile, Head, write_certificate
from services.verification.proof import verify

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
        LOG.warning("run %s leaves no certificate file: %s", version.run_id, error)
        return None
    return write_certificate(certificate)


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
