"""What problem a plan states, and whether it is one: its loss, support and mixture against asset type and method."""

from __future__ import annotations

import math

from models.basics import FloatArray, ProblemError
from models.cohorts.dealing import check_fixed_mixture
from models.cohorts.noise import METHOD as NOISY_METHOD
from models.cohorts.sums import check_on_sums
from models.methods.catalogue import check_method_problem, check_parameters, get_method
from models.methods.protocol import Method
from models.problem import RobustSpec
from models.site_ambiguity.ball import MixtureBall
from models.tuning.automatic import AUTO_LOSS
from services.contracts.errors import InvalidInputError
from services.contracts.machines.asset_type import AssetType
from services.contracts.plans.plan import Plan
from services.contracts.problems.all_scores import JOINT_METHODS, joint_loss, method_for
from services.contracts.problems.lift import LiftMismatchError, draw_lift, numbered
from services.contracts.problems.loss import LossSpec
from services.contracts.problems.support import scaled_support
from services.contracts.problems.tuning import AUTO, MOST_CANDIDATES, TuningGrid, tuning_grid
from services.contracts.wire.masking import threshold_of


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
        if plan.reveal == "sums":
            check_on_sums(method)
            check_fixed_mixture(plan.mixture.ball)
        _check_noise(plan)
        parameters = check_parameters(method, plan.parameters)
        check_method_problem(
            method, plan.mixture.ball, loss=loss, n_sites=n_sites, parameters=parameters,
            supported=spec.support != "unbounded",
        )
        method_for(method, spec, asset_type)
        # A support that does not fit the asset type or the loss is refused where a site would state its problem.
        lift = draw_lift(numbered(spec.lift, asset_type.feature_names), len(asset_type.features))
        support = scaled_support(spec.support, asset_type, loss.task, lift)
        _check_joint(plan, asset_type)
        _check_tuning(plan, asset_type, method)
        RobustSpec(0.0, spec.label_flip_cost, spec.transport_norm, support, spec.fit_intercept, loss)
    except LiftMismatchError as error:
        raise InvalidInputError(f"plan {plan.name}: {error}", code="lifts_differ") from None
    except ProblemError as error:
        raise InvalidInputError(f"plan {plan.name}: {error}", code="unknown_method_or_parameter") from None


def _check_joint(plan: Plan, asset_type: AssetType) -> None:
    """Refuse all classes as one problem where it cannot be: ``ProblemError`` with one line."""
    if joint_loss(plan.spec, asset_type) is None:
        return
    fits = {
        f"crammer_singer is trained by {', '.join(JOINT_METHODS)}, got {plan.method}": plan.method in JOINT_METHODS,
        "tuning scores planes one against the rest: leave out the tuning, or multi_class": plan.tuning is None,
        "noise is scaled for one plane a class: leave out the noise, or multi_class": plan.noise is None,
    }
    for problem, fit in fits.items():
        if not fit:
            raise ProblemError(problem)


def _check_tuning(plan: Plan, asset_type: AssetType, method: Method) -> None:
    """Refuse a tuning that cannot be: ``ProblemError`` with one line."""
    if plan.tuning is None or plan.tuned is not None:  # a tuned run is on with its choice
        return
    own = [each for each in plan.site_settings.values() if each.radius is not None or each.label_flip_cost is not None]
    fits = {
        "tuning is for methods that minimise the worst-case risk over the balls, and this one does not: "
        f"{plan.method}": method.is_robust and math.isfinite(plan.spec.loss.loss.lipschitz),
        "tuning tells scores without noise: leave out the tuning, or the noise": plan.noise is None,
        "tuning tries one radius and one flip cost for all sites: leave them out of site_settings": not own,
        "tuning tries factors of a radius above 0: set rule to samples or fixed, or leave out the tuning":
            plan.spec.radius.rule == "samples" or plan.spec.radius.rule == "fixed" and plan.spec.radius.value > 0,
    }
    for problem, fit in fits.items():
        if not fit:
            raise ProblemError(problem)
    found = grid_of(plan, asset_type)
    if len(found.candidates) > MOST_CANDIDATES:
        raise ProblemError(f"a tuning tries at most {MOST_CANDIDATES} candidates, the grid has {len(found.candidates)}")
    if plan.reveal == "sums":
        check_fixed_mixture(MixtureBall(plan.mixture.norm, max(each.mixture_radius for each in found.candidates)))
    for lift in found.lifts:
        draw_lift(numbered(lift, asset_type.feature_names), len(asset_type.features))
        if lift is not None and plan.spec.support_kind == "polytope":
            raise ProblemError("a polytope speaks of the features themselves: leave the lifts out of the tuning")


def grid_of(
    plan: Plan, asset_type: AssetType, rows_by_class: FloatArray | None = None, *, lifts: bool = True
) -> TuningGrid:
    """The grid of a plan with a tuning, by rows (C,) by class where one is rare; ``ProblemError`` for a grid of one.

    ``lifts``: whether "auto" may try others than the plan's own.
    """
    spec = plan.spec
    lifted = lifts and spec.support_kind != "polytope"
    return tuning_grid(
        plan.tuning, spec.lift, spec.label_flip_cost, plan.mixture.radius, len(asset_type.features),
        loss=spec.loss.name, with_lifts=lifted, rows_by_class=rows_by_class,
        by_squares=couples(plan, asset_type) and spec.transport_norm == "l2",
    )


def with_automatic_loss(plan: Plan, asset_type: AssetType) -> Plan:
    """The plan as "auto" tunes and trains it: of several classes with :data:`AUTO_LOSS` for the hinge.

    As it is where it has no "auto", two classes, another loss, a support or all classes as one problem, for which the
    hinge stays. Of two classes their shares decide.
    """
    several = len(asset_type.fault_classes) > 2
    return with_auto_loss(plan) if several and _leaves_the_loss(plan) else plan


def asks_for_shares(plan: Plan, asset_type: AssetType) -> bool:
    """Whether "auto" goes by the rows of each class, of the plan as it was stated.

    Where a class is rare, :data:`AUTO_LOSS` takes the place of the hinge of two classes too, and other terms are tried.
    """
    return len(asset_type.fault_classes) >= 2 and _leaves_the_loss(plan)


def with_auto_loss(plan: Plan) -> Plan:
    """The plan with :data:`AUTO_LOSS`."""
    return plan.model_copy(update={"spec": plan.spec.model_copy(update={"loss": LossSpec(name=AUTO_LOSS)})})


def _leaves_the_loss(plan: Plan) -> bool:
    """Whether a plan leaves its loss to "auto": it has the hinge, of planes one against the rest without a support."""
    spec = plan.spec
    return all((
        plan.tuning == AUTO, spec.loss.name == "hinge", spec.support == "unbounded", spec.multi_class == "one_vs_rest",
    ))


def couples(plan: Plan, asset_type: AssetType) -> bool:
    """Whether the trained planes of a run's plan are coupled: of several classes, by "auto", with fixed site weights.

    A plan that asks for the worst mixture of the sites has its planes as they are: a coupling goes by the mean.
    """
    spec = plan.spec
    return all((
        plan.tuning == AUTO, len(asset_type.fault_classes) > 2, spec.loss.name == "logistic",
        spec.support == "unbounded", spec.multi_class == "one_vs_rest", spec.fit_intercept, plan.mixture.radius == 0,
        get_method(plan.method).is_robust, plan.audit != "every round",
    ))


def _check_noise(plan: Plan) -> None:
    """Refuse what the promise of noise does not hold of: ``ProblemError``, or ``InvalidInputError`` of its budget."""
    if plan.noise is None:
        return
    spec = plan.spec
    radii = [spec.radius, *(own.radius for own in plan.site_settings.values() if own.radius is not None)]
    fits = {
        f'noise is added to sums: set reveal = "sums", got {plan.reveal}': plan.reveal == "sums",
        f"noise is for method {NOISY_METHOD}, got {plan.method}": plan.method == NOISY_METHOD,
        f"noise is for losses of classes, {spec.loss.name} is none": spec.loss.task == "classification",
        f"noise is for losses of a bounded slope, {spec.loss.name} has none": math.isfinite(spec.loss.loss.lipschitz),
        "noise is for features without bounds in the risk: set support to unbounded": spec.support == "unbounded",
        "noise is scaled for features between 0 and 1: leave out the lift": spec.lift is None,
        "a radius that is estimated from the rows is told without noise: set rule to samples or fixed":
            all(rule.rule != "confidence" or rule.tail is not None for rule in radii),
    }
    for problem, fit in fits.items():
        if not fit:
            raise ProblemError(problem)
    plan.noise.honest(threshold_of(plan.min_cohort, plan.sum_threshold))


def check_cohort_size(plan: Plan, n_sites: int) -> None:
    """On sums there must be plants enough for a cohort; ``InvalidInputError`` with one line."""
    if plan.reveal == "sums" and n_sites < plan.min_cohort:
        raise InvalidInputError(
            f"plan {plan.name}: {n_sites} sites take part, and a sum over fewer than {plan.min_cohort} hides too "
            'little; take more sites, or set reveal = "each site", which each of them must allow',
            code="cohort_too_small",
        )
