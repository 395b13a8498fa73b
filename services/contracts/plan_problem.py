"""What problem a plan states, and whether it is one: its loss, support and mixture against asset type and method."""

from __future__ import annotations

from models.basics import ProblemError
from models.methods.catalogue import check_method_problem, check_parameters, get_method
from models.problem import RobustSpec
from services.contracts.asset_type import AssetType
from services.contracts.errors import InvalidInputError
from services.contracts.lift import lifted_size
from services.contracts.messages import TrainingSpec
from services.contracts.plan import Plan
from services.contracts.support import scaled_support


def check_problem(plan: Plan, asset_type: AssetType, n_sites: int | None = None) -> None:
    """The loss must be one of what the asset type has, and the problem one that the method solves.

    Raises
    ------
    InvalidInputError
        With one line of what does not fit.
    """
    missing = asset_type.missing_for_task(plan.spec.loss.task)
    if missing:
        raise InvalidInputError(
            f"plan {plan.name}: {missing}, and the plan's loss is {plan.spec.loss.name}", code="wrong_task"
        )
    try:
        method = get_method(plan.method)
        parameters = check_parameters(method, plan.parameters)
        check_method_problem(
            method, plan.mixture.ball, loss=plan.spec.loss.loss, n_sites=n_sites, parameters=parameters,
            supported=plan.spec.support != "unbounded",
        )
        _check_support(plan.spec, asset_type)
    except ProblemError as error:
        raise InvalidInputError(f"plan {plan.name}: {error}", code="unknown_method_or_parameter") from None


def _check_support(spec: TrainingSpec, asset_type: AssetType) -> None:
    """Refuse, with :class:`ProblemError`, a support that does not fit the asset type or the loss."""
    loss = spec.loss.loss
    n_features = lifted_size(spec.lift, len(asset_type.features))
    support = scaled_support(spec.support, asset_type, loss.task, n_features)
    RobustSpec(0.0, spec.label_flip_cost, spec.transport_norm, support, spec.fit_intercept, loss)
