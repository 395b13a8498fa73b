"""The scikit-learn face of the core. Needs scikit-learn (extra ``sklearn``); nothing else in ``models`` does."""

from models.estimators.svc import DRSVC, FederatedDRSVC

__all__ = ["DRSVC", "FederatedDRSVC"]
