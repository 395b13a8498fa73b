"""What problem a plan states, and whether it is one: its loss, support and mixture against asset type and method."""

from __future__ import annotations

from models.basics import ProblemError
from models.methods.catalogue import check_method_problem, check_parameters, get_method
from models.problem import RobustSpec
from services.contracts.asset_type import AssetType
from services.contracts.errors import InvalidInputError
from services.contracts.lift import lifted_size
from services.contracts.plan import Plan
from services.contracts.support import scaled_support


def check_problem(plan: Plan, asset_type: AssetType, n_sites: int | None = None) -> None:
    """The loss must be one of what the asset type has, and the problem one that the method solves.

    ``InvalidInputError`` with one line of what does not fit.
    """
    spec, loss = plan.spec, plan.spec.loss.loss
    missing = asset_type.missing_for_task(loss.task)
    if missing:
        raise InvalidInputError(
            f"plan {plan.name}: {missing}, and the plan's loss is {plan.spec.loss.name}", code="wrong_task"
        )
    try:
        method = get_method(plan.method)
        parameters = check_parameters(method, plan.parameters)
        check_method_problem(
            method, plan.mixture.ball, loss=loss, n_sites=n_sites, parameters=parameters,
            supported=spec.support != "unbounded",
        )
        # A support that does not fit the asset type or the loss is refused where a site would state its problem.
        support = scaled_support(spec.support, asset_type, loss.task, lifted_size(spec.lift, len(asset_type.features)))
        RobustSpec(0.0, spec.label_flip_cost, spec.transport_norm, support, spec.fit_intercept, loss)
    except ProblemError as error:
        raise InvalidInputError(f"plan {plan.name}: {error}", code="unknown_method_or_parameter") from None
