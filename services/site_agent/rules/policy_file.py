"""The commented policy file that a new site gets: the rules, what each means, and what it is at the start."""

from __future__ import annotations

import textwrap
from typing import get_args

from models.methods.catalogue import METHODS
from services.contracts.wire.messages import Kind, Reveal


def default_policy_text(
    asset_types: tuple[str, ...], methods: tuple[str, ...] = (), *, own_scores: bool = False,
    seen_alone: bool = False, figures: bool = False,
) -> str:
    """Policy file that ``ballast-site init`` writes; without methods it lists all that there are."""
    methods = methods or tuple(METHODS)

    def listed(names: tuple[str, ...]) -> str:
        lines = textwrap.wrap(", ".join(f'"{name}"' for name in names), 100, break_on_hyphens=False)
        return "[" + "\n    ".join(lines) + "]"

    return f"""# What this plant lets out. You own this file: Ballast only reads it, at the start of the agent.
# What is not listed here is not allowed. See what has left with: ballast-site ledger show

# Training methods whose messages may be answered; strike out what you do not want.
methods = {listed(methods)}

# Kinds of machine for which this plant takes part.
asset_types = {listed(asset_types)}

# join: number of training rows; radius and its confidence. tune: before a run, model-sized vectors over the rows
# without a fold, and counts over that fold, for each candidate of the plan's grid, and after its last round the loss
# of planes' scores with its gradient; strike it out to take part in no tuning, and in no run whose plan tunes. round:
# model-sized vectors, under masks where the run is on sums. agree, prepare, unmask: keys and shares of those masks.
# evaluate: counts, sums of errors and risks at given weights, under masks too. open: two answers of this plant, sealed
# to an auditor below, once a run.
messages = {listed(get_args(Kind))}

# What a run may show the OEM's coordinator of this plant's answers. "sums": masked sums over a cohort of plants, and
# no answer of this plant alone. Add "each site" where the plant may be seen alone; the OEM's plan says which it is.
reveal = {listed(get_args(Reveal) if seen_alone else ("sums",))}

# On sums: plants in the cohort at least, this one among them.
min_cohort = 3

# On sums: whether this plant's own scores, losses and risks may be told by themselves at the end of a run (the OEM's
# reports then show how well the plant is served); else they go into the cohort's sums alone.
own_scores = {str(own_scores).lower()}

# Whether counts of held-out scores at fixed, coarse thresholds may be told at the end of a run, from which sets of
# classes, intervals and probabilities follow: by themselves where the scores may be, else in the cohort's sums. For a
# target also counts of residuals, by tenth of the estimate, of held-out rows and, more coarsely, of training rows.
calibration_counts = true

# Whether this plant tells at a join, by a digest under a secret of its own, whether its rows and terms are those of the
# run before. Its earlier answers then count on, and a retraining asks it little; the OEM learns that they are the same.
tell_unchanged = true

# Whether two figures of this plant are told at a join, for the OEM's console: how far its readings have moved since it
# first took part (the largest distance of a sensor's distribution, from 0 to 1; which sensor is not told), and the
# share of its rows that answers so far isolate. See them here with: ballast-site drift, ballast-site exposure
tell_drift = {str(figures).lower()}
tell_exposure = {str(figures).lower()}

# On sums: public keys of the auditors to whom this plant opens two of its answers where the sums of its cohort prove
# that some plant of it lied. The auditor sees two single answers, whose difference can be a row; the OEM sees neither.
# In a run whose plan names an auditor that is not here, this plant does not take part.
auditors = []

# On sums: whether this plant takes part where the plan has all answers of a run opened to the auditor, not two where a
# sum shows a lie. More lies are found; the auditor then sees what the OEM sees in a run without sums.
audit_every_round = false

# Largest message in bytes, both ways.
max_message_bytes = 1048576

# A task that takes more operations than this is refused before anything is computed: local steps times rows of a batch
# times weights, some seconds of one core. A plant with a hundred thousand rows and large models may want more.
max_operations = 5e9

# With fewer training rows than this nothing leaves but a refusal: a subgradient over one row is that row. Nor does a
# step of local training go by fewer rows, whatever the task asks.
min_samples = 20

# With fewer held-out rows than this no evaluation is answered.
min_test_samples = 5

# A class with fewer held-out rows than this is left out of the counts of true by diagnosed class, and so of the scores
# and of the confusion matrix in the OEM's reports.
min_class_samples = 5

# Rows come and go by so many at least of a class, of the training and of the held-out rows each. With 5 new rows wait
# until there are five of their class, and where one row is gone four others are left out for good: then nothing that is
# told before and after differs by one row, counts and losses included. 1: every row counts from the next run on.
min_new_rows = 1

# Whether the plant takes part also where all its training rows are of one class. It never had a fault: true. It should
# have rows of another class: then its labels are not what they should be, and false says so.
one_class = false

# At most this many rounds of one run are answered; without the line there is no limit.
# max_rounds_per_run = 200

# Share of the training rows that the difference of two answers, or a difference of such differences, may isolate, over
# all runs, also of an answer from before rows came or went. Where the exact answer would isolate a row another valid
# one leaves, so honest runs isolate none and 0 costs them a few rounds. See where it stands with: ballast-site exposure
exposure_limit = 0.0

# Whether answers may leave of which the plant cannot say all that they isolate: on a support (sensor ranges, a
# polytope) what the adversary moves adds to a vector, drflm and feddro mix rows, and under a lift a vector has more
# numbers than a row: a feature that few rows reach (splines, kernels) has a slope of its own, and products and random
# waves are equations that few rows solve. Such an answer may tell single cells, rows, or whether a given row is there
# to who asks for it; all rows count in `ballast-site exposure` then. With false, runs that choose their lift themselves
# go on without one, at all plants.
allow_unaccounted = true

# Numbers for each training row, of all different Fourier and Nystrom lifts (their components) under which answers may
# leave, over all runs until half of the rows are others; of different splines an eighth as many segments, or 64. Enough
# of them are the rows. The first such lift may have 320, or 5 a row where that is less. The lift of an earlier run
# counts no second time; 0 refuses Fourier and Nystrom lifts.
lift_limit = 2.0

# Share of the rows that any combination of all answers may isolate. It takes numbers that only this plant has, so it is
# an upper bound of what is possible; honest runs reach 5 to 40 in 100 rows, hence no limit at the start.
leverage_limit = 1.0

# Answers in one run on the same rows, and runs in 24 hours.
max_answers_per_run = 1000
max_runs_per_day = 50

# A question is refused at weights whose risk is more than this many times that of zero weights whatever the rows: the
# optimum of a run stays below one over the plant's weight in it.
steepness_limit = 100.0

# A question is refused that is so near to an earlier one of the run that no risk could change by this share of how far
# the risks moved in the run; 0 allows them all.
nearness_limit = 1e-7

# What the rounds of all runs may tell of any one row, as an epsilon at a delta, whatever rows come and go beside it.
# With the first line only runs with noise are answered, until it is spent, and no tuning; without it any run is. Scores
# at the end are not in it.
# noise_epsilon = 3.0
# noise_delta = 1e-6

# On sums: the plants that this one masks with, and their public keys as their owners told them; without this part the
# plants that the OEM names. A coordinator that invents plants is stopped by it alone (the ledger shows all keys).
# [peers]
# plant-2 = "U..."
"""
