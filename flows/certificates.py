"""The certificate file of a trained model: written only where it proves what the version claims."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np

from models.cuts.carried_proof import CarriedProof, last_digits
from models.cuts.evidence import EARLIER_RUN
from models.problem import Certificate, SiteTerms
from services.contracts.errors import BallastError
from services.contracts.keys.signed_documents import signature_of
from services.contracts.keys.signing import public_key
from services.contracts.plain_words import joined
from services.contracts.problems.all_scores import joint_loss, trained_heads
from services.contracts.versions.model_version import ModelVersion
from services.contracts.wire.codec import digest
from services.verification.certificate_file import CertificateFile, Head, write_certificate
from services.verification.proof import RefutedError, proven_lower, verify
from services.verification.stated import STEEPEST

LOG = logging.getLogger("ballast.flows")


def certificate_file(version: ModelVersion, proofs: tuple[CarriedProof, ...]) -> tuple[ModelVersion, bytes | None]:
    """The version and the bytes of its file; None, with a line in the log, where cuts do not prove its bounds.

    Where enclosed arithmetic proves its lower bound but for last digits, the version says what is proven. No file is
    left for methods whose bounds are of something else than the risk of the worst mixture of the sites.

    Raises
    ------
    RefutedError
        No rows have the cuts and risks that the run left.
    """
    if not proofs or len(proofs) != trained_heads(version.spec, version.asset_type):
        LOG.info("run %s leaves no certificate file: %s has no cuts that prove its bounds", version.run_id,
                 version.method)
        return version, None
    centred = tuple(each for proof in proofs if (each := proof.around_the_centre()) is not None)
    ways = [tuple(proof.plain() for proof in proofs), *([centred] if len(centred) == len(proofs) else [])]
    said: list[BallastError] = []
    for told in (_as_it_stands, _as_it_is_proven):
        for way in ways:
            try:
                found, certificate = told(version, way)
                verify(certificate)
            except BallastError as error:
                said.append(error)
            else:
                return found, write_certificate(certificate)
    # The first way has cuts as they were told; noise of a plan's own may make them such as no rows have.
    if isinstance(said[0], RefutedError) and version.noise is None:
        raise said[0]
    LOG.info("run %s leaves no certificate file: %s", version.run_id, said[-1])
    return version, None


def _as_it_stands(version: ModelVersion, proofs: tuple[CarriedProof, ...]) -> tuple[ModelVersion, CertificateFile]:
    return version, _certificate(version, proofs)


def _as_it_is_proven(version: ModelVersion, proofs: tuple[CarriedProof, ...]) -> tuple[ModelVersion, CertificateFile]:
    """The same with lower bounds that are proven, where no more than last digits are missing from those of the run."""
    lower = proven_lower(_certificate(version, proofs))
    known = tuple(
        replace(proof, lower=low) if low >= proof.lower - last_digits(proof.upper, proof.lower) else proof
        for proof, low in zip(proofs, lower, strict=True)
    )
    total = sum(proof.lower for proof in known)
    told = version.model_copy(
        update={"lower_bound": total, "certified_gap": Certificate(version.objective, total).gap}
    )
    return told, _certificate(told, known)


def carried(
    draft: ModelVersion, proofs: tuple[CarriedProof, ...], seed_file: Path
) -> tuple[ModelVersion, bytes | None]:
    """The version signed by the coordinator's key, its certificate file named in it; and the file, where it has one.

    Where no rows have the cuts of its run, it says so.
    """
    try:
        draft, data = certificate_file(draft, proofs)
    except RefutedError as error:
        LOG.warning("no rows have what plants told in run %s: %s", draft.run_id, error)
        data = None
        said = f"no rows have what plants told in its run: {error}"
        draft = draft.model_copy(update={"refuted": str(error), "note": joined(draft.note, said)})
    named = "" if data is None else digest(data)
    draft = draft.model_copy(update={"certificate_sha256": named, "signed_by": public_key(seed_file)})
    return draft.model_copy(update={"signature": signature_of(draft.to_document(), seed_file)}), data


def _certificate(version: ModelVersion, proofs: tuple[CarriedProof, ...]) -> CertificateFile:
    shared, loss = version.spec.label_flip_cost, version.spec.loss.loss
    cohorts = {each.name: each.sites for each in version.cohorts}
    sites = proofs[0].sites if cohorts else tuple(
        SiteTerms(site.site_id, site.weight, site.radius, shared if (own := site.label_flip_cost) is None else own)
        for site in version.sites
    )
    return CertificateFile(
        run_id=version.run_id, site_ids=tuple(site.site_id for site in sites),
        members=tuple(cohorts[site.site_id] for site in sites) if cohorts else (),
        site_weights=np.array([site.weight for site in sites]), radii=np.array([site.radius for site in sites]),
        label_flip_costs=np.array([site.label_flip_cost for site in sites]),
        lipschitz=float(min(loss.lipschitz, STEEPEST)), transport_norm=version.spec.transport_norm,
        # Intercepts of all classes as one problem are weights like the others: no norm is in its cuts.
        fit_intercept=version.spec.fit_intercept and joint_loss(version.spec, version.asset_type) is None,
        mixture_norm=proofs[0].ball.norm,
        mixture_radius=float(proofs[0].ball.radius),
        earlier_run="" if version.reused is None else version.reused.run_id,
        heads=tuple(_head(proof) for proof in proofs),
        upper=version.objective, lower=version.lower_bound, gap=version.certified_gap,
        **({} if version.noise is None else {"confidence": version.noise.confidence, "within": version.noise.within}),
    )


def _head(proof: CarriedProof) -> Head:
    return Head(
        weights=proof.weights, risks=proof.risks, mixture=proof.mixture, site=proof.site, offset=proof.offset,
        slope=proof.slope, norm_weight=proof.norm_weight, swing=proof.swing, multipliers=proof.multipliers,
        around=proof.around, upper=proof.upper, lower=proof.lower, earlier=proof.rounds == EARLIER_RUN,
    )
