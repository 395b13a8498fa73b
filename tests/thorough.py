"""Tests that ``make test`` leaves to ``make thorough``: they repeat at length what others hold in brief.

Each says again with another loss, norm, lift, mode, estimator or moment of a kill what a sibling in the same file says,
or takes minutes of real processes for what ``tests/simulation`` plays by the thousand. Where a part of the tests is
asked for (``make test ARGS=PATH``, the list of breaks, pytest by itself) they run like all others.
"""

from __future__ import annotations

from collections.abc import Iterable

THOROUGH = {
    # Kills and moments beside those of the same file, each with minutes of real processes.
    "tests/journeys/test_two_flows.py": ("test_each_run_has_one_flow_run_and_goes_on_where_one_process_is_killed",),
    "tests/journeys/test_schedule.py": (
        "test_flow_and_runner_killed_together", "test_what_another_process_is_starting_is_left_to_it",
        "test_a_flow_run_that_was_being_started_at_a_kill_does_not_stay_pending",
    ),
    "tests/journeys/test_orders.py": ("test_a_deployment_that_somebody_changed_runs_our_flow_and_nothing_else",),
    "tests/journeys/test_killed_methods.py": (
        "test_a_killed_flow_resumes_to_the_same_model[drfl-admm]",
        "test_a_killed_flow_resumes_to_the_same_model[scaff-pd-ia]",
        "test_a_killed_flow_resumes_to_the_same_model[fdr-sm]",
    ),
    "tests/journeys/test_interruptions.py": ("test_too_few_sites_end_the_run_with_the_reason",),
    "tests/journeys/test_prefect_pages.py": (
        "test_prefect_shows_a_tuning_and_the_registry_nothing", "test_a_triggered_plan_is_trained",
    ),
    "tests/flows/test_forgetting.py": (
        "test_who_is_killed_while_a_version_is_deleted_goes_on_and_tells_it[version]",
        "test_who_is_killed_while_a_version_is_deleted_goes_on_and_tells_it[files]",
        "test_of_two_that_look_at_the_same_moment_one_forgets",
    ),
    "tests/flows/test_after_the_version.py": (
        "test_a_run_waits_hours_for_a_registry_that_is_away",
        "test_wherever_it_died_the_version_is_the_one_that_was_made[before the run's end-each site]",
        "test_wherever_it_died_the_version_is_the_one_that_was_made[between the version's row and the run's-each site]",
        "test_wherever_it_died_the_version_is_the_one_that_was_made[in the middle of the registry-each site]",
        "test_gates_are_judged_and_a_version_is_promoted_once[True-1e-12]",
    ),
    "tests/services/registry/test_other_stores.py": (
        "test_processes_that_open_a_new_store_at_the_same_time_do_not_break_it",
    ),
    "tests/services/registry/test_forgotten.py": (
        "test_who_dies_while_deleting_a_version_leaves_what_the_next_one_deletes[delete_run-",
        "test_who_dies_while_deleting_a_version_leaves_what_the_next_one_deletes[get_run-",
        "test_who_dies_while_deleting_a_version_leaves_what_the_next_one_deletes[delete_model_version-",
        "test_who_dies_while_deleting_a_version_leaves_what_the_next_one_deletes[_hard_delete_run-",
        "test_who_dies_while_deleting_a_version_leaves_what_the_next_one_deletes[delete_registered_model_alias-",
    ),
    "tests/api/cli/processes/test_ready_lines.py": ("test_up_says_where_all_is_when_all_is_there",),
    "tests/browser/test_tuning_page.py": ("test_a_tuning_is_asked_for_and_its_page_shows_the_choice_by_itself",),
    # Single answers where sums are in ``make test``.
    "tests/flows/test_coupling.py": ("test_a_version_of_coupled_planes_is_proven_and_says_what_is_not[each site]",),
    "tests/flows/test_sums.py": (
        "test_every_method_that_works_on_sums_does_so_through_the_service[standard]",
        "test_every_method_that_works_on_sums_does_so_through_the_service[fedprox]",
        "test_every_method_that_works_on_sums_does_so_through_the_service[level-bundle-plain]",
        "test_every_method_that_works_on_sums_does_so_through_the_service[fedsgd]",
    ),
    "tests/flows/test_all_classes.py": ("test_all_classes_are_trained_as_one_problem_from_a_plan[each site-0.2]",),
    "tests/services/coordinator/beginning/test_coupling.py": (
        "test_the_planes_are_coupled_as_by_all_rows_at_once[each site]",
    ),
    "tests/services/coordinator/beginning/test_tuning.py": (
        "test_the_run_goes_on_with_the_chosen_terms[each site]",
        "test_a_tuning_costs_no_more_than_its_budget_by_what_the_plants_were_asked[each site]",
        "test_the_best_of_three_folds_is_by_one_score_of_a_candidate[each site]",
    ),
    "tests/flows/test_tuning.py": (
        "test_a_tuning_alone_makes_no_version_and_the_next_training_takes_its_choice[each site]",
        "test_a_plan_with_tuning_trains_with_the_terms_that_it_chose[each site]",
    ),
    "tests/flows/test_unlearning.py": (
        "test_the_version_is_that_of_the_others_and_nothing_of_the_plant_stays[each site]",
        "test_a_plant_whose_run_failed_is_forgotten_after_a_later_one_without_it[promotion]",
    ),
    "tests/flows/test_weekly.py": (
        "test_a_week_with_three_changed_plants_takes_few_rounds_to_the_same_model[each site]",
    ),
    "tests/flows/test_shown_in_mlflow.py": ("test_a_run_leaves_its_pictures_datasets_and_tags[each site]",),
    # Further losses, norms, lifts, methods and shares.
    "tests/browser/test_pages.py": ("test_every_page_is_accessible_whole_and_our_own[dark-820]",),
    "tests/flows/test_verification.py": (
        "test_a_registered_version_is_proven_from_its_files[split]",
        "test_a_registered_version_is_proven_from_its_files[bent]",
        "test_a_registered_version_is_proven_from_its_files[mixed]",
    ),
    "tests/flows/test_networks.py": (
        "test_a_network_is_trained_from_a_plan_and_says_that_it_has_no_certificate[scaffold]",
        "test_a_network_is_trained_from_a_plan_and_says_that_it_has_no_certificate[scaff-pd-ia]",
    ),
    "tests/flows/test_fair_methods.py": ("test_the_fairness_of_a_trained_version_is_told_over_rest[fair-mixup]",),
    "tests/services/verification/test_cohorts.py": (
        "test_the_claims_of_a_run_on_sums_are_proven[one cohort]",
        "test_the_claims_of_a_run_on_sums_are_proven[a plant is away]",
    ),
    "tests/services/site_agent/answers/test_training.py": tuple(
        f"{name}[{method}]" for method in ("afl", "drfa-exact", "fdr-admm-sc", "fedsgd", "safl", "scaff-pd", "q-fedavg")
        for name in (
            "test_every_method_closes_its_certificate_over_three_classes",
            "test_a_messages_size_is_the_same_for_100_and_for_10000_rows",
        )
    ),
    "tests/services/coordinator/round_loop/test_summed_rounds.py": (
        "test_a_plant_that_makes_masks_and_answers_no_round_is_left_out[late]",
    ),
    "tests/services/site_agent/connection/test_web_socket.py": (
        "test_what_a_reverse_proxy_answers_in_place_of_the_server_stands_in_the_log[200",
        "test_what_a_reverse_proxy_answers_in_place_of_the_server_stands_in_the_log[404",
    ),
    "tests/api/cli/test_main.py": (
        "test_a_list_imports_what_it_shows[run list-", "test_a_list_imports_what_it_shows[plan list-",
    ),
    "tests/api/models/test_moved_aliases.py": (
        "test_every_alias_is_put_back_moved_or_taken_away[previous-champion]",
        "test_a_champion_moved_by_hand_is_reported_and_put_back[sqlite]",
        "test_a_promotion_on_its_way_is_not_undone[sqlite]",
    ),
    "tests/simulation/test_simulation.py": (
        "test_a_planted_mistake_is_found[a version that its run recorded before a crash ends the run-",
        "test_a_planted_mistake_is_found[a cut of an earlier run is kept of a plant whose rows changed-",
    ),
    "tests/flows/test_abalone.py": (
        "test_rings_are_estimated_in_rings_and_the_interval_covers[rings-upper]",
        "test_rings_are_estimated_in_rings_and_the_interval_covers[rings-median]",
    ),
    "tests/flows/test_every_method.py": (
        "test_a_plan_with_each_method_ends_with_a_certificate_around_the_optimum[cohort-bundle-sensor_ranges]",
    ),
    "tests/services/coordinator/beginning/test_rare_classes.py": (
        "test_several_classes_of_which_one_is_rare_are_tuned_as_two_are[0.3-radii1]",
    ),
    "tests/services/coordinator/beginning/test_automatic_tuning.py": (
        "test_plants_that_count_no_class_are_trained_on_with_the_plans_own_terms[sums]",
    ),
    "tests/services/site_agent/test_without_scipy.py": ("test_the_doors_own_tests_pass",),
    "tests/services/plant_simulator/test_calibration.py": ("test_so_it_does_for_another_seed_with_other_measurements",),
    "tests/services/predictor/test_lifted.py": (
        "test_no_move_of_the_sensors_shorter_than_the_radius_changes_the_class[3-l1-spline]",
    ),
    "tests/benchmarks/test_accuracy.py": (
        "test_eighty_rows_are_enough_for_every_learner",
        "test_three_plants_without_a_fault_train_with_the_one_that_has_them",
    ),
    "tests/benchmarks/papers/fdr_svm/test_author_rivals.py": (
        "test_a_column_chooses_as_one_run_after_the_other_does[FedProx-pump]",
        "test_a_column_chooses_as_one_run_after_the_other_does[FedDRO (KL)-pump]",
        "test_rivals_on_our_features_have_an_intercept_and_the_unit_box[FedProx]",
    ),
    "tests/models/geometry/test_separable_move.py": (
        "test_no_attack_in_more_dimensions_is_shorter[linf]", "test_in_the_plane_it_is_what_a_fine_grid_finds[l1]",
    ),
    "tests/models/worst_case/test_every_loss.py": ("test_agrees_with_cvxpy_and_its_cut_holds[names2-box-80]",),
    "tests/models/fairness/test_quadratic_bounds.py": tuple(
        f"test_in_a_box_no_point_of_a_grid_is_better_and_the_bound_proves_it[{seed}-" for seed in (2, 3, 4, 5)
    ),
    "tests/models/cuts/test_reuse.py": (
        "test_reused_cuts_lie_below_the_risks_of_now_and_lead_to_the_same_optimum[each site-2]",
    ),
    "tests/models/methods/test_reach.py": tuple(
        f"test_no_honest_step_ends_beyond_the_reach[{method}]"
        for method in ("fdr-admm-sc", "fedprox", "safl", "scaff-pd")
    ),
    "tests/models/methods/test_training_methods.py": (
        "test_admm_converges_and_brackets_the_optimum[fdr-admm-reg-inf-l2]",
        "test_admm_converges_and_brackets_the_optimum[fdr-admm-1.0-linf]",
    ),
    "tests/models/methods/bundle/test_relative.py": ("test_both_bounds_hold_and_the_end_is_critical[3-l1-False]",),
    "tests/models/methods/bundle/test_cohort.py": (
        "test_the_certificate_of_sums_brackets_the_optimum_in_every_round[pinball-True-l1]",
        "test_the_certificate_of_sums_brackets_the_optimum_in_every_round[hinge-True-linf]",
        "test_the_certificate_of_sums_brackets_the_optimum_in_every_round[epsilon_insensitive-False-l2]",
        "test_the_certificate_of_sums_brackets_the_optimum_in_every_round[hinge-False-l1]",
        "test_rounds_to_1e_4_in_one_cohort[linf-6-28]",
        "test_the_certificate_of_sums_brackets_the_optimum_in_every_round[huber-False-linf]",
    ),
    "tests/models/methods/local_sgd/objectives/test_graph.py": (
        "test_the_methods_of_local_steps_train_it[gat]", "test_the_methods_of_local_steps_train_it[mpnn]",
    ),
    "tests/models/methods/local_sgd/test_scaff_pd.py": (
        "test_certificate_holds_the_optimum_between_its_bounds[0.2]", "test_reaches_the_exact_solution[0.1]",
    ),
    "tests/models/methods/splitting/test_ad_lpmm.py": (
        "test_the_papers_constant_ends_at_the_same_optimum",
        "test_the_iterates_alone_reach_the_optimum[logistic-0.2]",
        "test_reaches_the_optimum_on_a_polytope[hinge-l2]",
        "test_sizes_come_from_the_sites_that_are_there_and_stand_in_the_end",
    ),
    "tests/models/features/test_common_units.py": (
        "test_the_unit_of_the_features_does_not_touch_a_fit[round by round-",
        "test_the_unit_of_the_features_does_not_touch_a_fit[at hand-pinball-",
    ),
    "tests/models/test_one_vs_rest.py": ("test_heads_are_binary_runs_side_by_side[4-",),
    # Further estimators and terms of them.
    "tests/models/estimators/test_drfl.py": (
        "test_the_regressor_passes_the_checks_of_scikit_learn[pinball-2]",
        "test_the_classifier_passes_the_checks_of_scikit_learn[logistic-0]",
        "test_raw_unscaled_features_are_solved_to_the_gap[smooth_hinge-0.0]",
        "test_raw_unscaled_features_are_solved_to_the_gap[hinge-0.3]",
        "test_targets_far_from_0_are_fitted_as_those_around_it[given2]",
    ),
    "tests/models/estimators/test_svc.py": ("test_passes_the_checks_of_scikit_learn[DRSVC]",),
    "tests/models/estimators/test_scaling.py": (
        "test_units_of_the_features_change_nothing_and_what_is_told_is_in_them[products]",
        "test_units_of_the_features_change_nothing_and_what_is_told_is_in_them[plane]",
        "test_the_unit_of_the_target_changes_nothing_either[pinball-",
    ),
    "tests/models/estimators/test_tuning.py": (
        "test_auto_tries_planes_splines_and_products[FederatedDRSVC]",
        "test_auto_tries_planes_splines_and_products[FederatedDRClassifier]",
        "test_auto_learns_rare_faults_by_the_logistic_loss_as_a_plan_does[0.1-",
    ),
    "tests/models/estimators/test_machines.py": (
        "test_a_tuning_scores_machines_that_its_candidates_have_not_seen[FederatedDRSVC]",
        "test_a_tuning_scores_machines_that_its_candidates_have_not_seen[FederatedDRClassifier]",
        "test_any_names_do_and_rows_that_count_nothing_take_their_machines_along[FederatedDRSVC]",
        "test_any_names_do_and_rows_that_count_nothing_take_their_machines_along[FederatedDRClassifier]",
        "test_a_tuning_scores_machines_that_its_candidates_have_not_seen[FederatedDRRegressor]",
    ),
    "tests/models/estimators/test_coupled.py": (
        "test_what_a_plan_does_not_couple_is_not_coupled_here[client_radius=0.2]",
        "test_what_a_plan_does_not_couple_is_not_coupled_here[loss=smooth_hinge]",
        "test_what_a_plan_does_not_couple_is_not_coupled_here[tuning={",
        "test_what_a_plan_does_not_couple_is_not_coupled_here[support=", "test_a_weight_of_two_couples_as_two_copies",
    ),
}
"""Beginnings of names, by file: of one test, or of some cases of one."""
BEGINNINGS = tuple(f"{file}::{name}" for file, names in THOROUGH.items() for name in names)


def is_thorough(test: str) -> bool:
    """Whether a test, by its id, is left to ``make thorough``."""
    return test.startswith(BEGINNINGS)


def named_in_vain(tests: Iterable[str]) -> list[str]:
    """Beginnings of which no test of the whole suite begins so."""
    known = list(tests)
    return [start for start in BEGINNINGS if not any(test.startswith(start) for test in known)]
