"""The scikit-learn face of the core. Needs scikit-learn (extra ``sklearn``); nothing else in ``models`` does."""

from models.estimators.drfl import FederatedDRClassifier
from models.estimators.regressor import FederatedDRRegressor
from models.estimators.svc import DRSVC, FederatedDRSVC

__all__ = ["DRSVC", "FederatedDRClassifier", "FederatedDRRegressor", "FederatedDRSVC"]
