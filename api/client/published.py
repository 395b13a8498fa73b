"""What an installed wheel has as ``ballast.client``."""

from api.client import *  # noqa: F403  the names of ``__all__`` there
from api.client import __all__ as __all__
