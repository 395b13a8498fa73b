"""Fairness over the sites: indices, relative fairness, its ambiguity set, dual step and bounds."""

from models.fairness.indices import atkinson as atkinson
from models.fairness.indices import fairness_discrepancy as fairness_discrepancy
from models.fairness.indices import get_index as get_index
from models.fairness.indices import gini as gini
from models.fairness.indices import lorenz_curve as lorenz_curve
from models.fairness.indices import palma as palma
from models.fairness.indices import relative_unfairness as relative_unfairness
from models.fairness.indices import skewness as skewness
from models.fairness.indices import transformed_lorenz_curve as transformed_lorenz_curve
from models.fairness.indices import twenty_twenty as twenty_twenty
from models.fairness.indices import unfairness_over as unfairness_over
from models.fairness.indices import worst_share as worst_share
