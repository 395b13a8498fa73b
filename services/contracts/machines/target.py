"""The numeric target of an asset type: what a regression plan learns to estimate, in its unit and range."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, StringConstraints

from services.contracts.base import UNIT_PATTERN
from services.contracts.machines.value_range import ValueRange

Unit = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=40, pattern=UNIT_PATTERN)]


class Target(ValueRange):
    """A number that an expert measures once the machine is open: a leak's area, the hours that are left.

    ``low`` and ``high`` are the range in which it can lie; inside, the target is scaled to [0, 1] by them. A value
    outside is clipped to the range or refused, as ``out_of_range`` says.
    """

    unit: Unit = Field(description='such as "mm^2" or "h"; "1" for a number without a unit')

    def unscale(self, scaled: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values in [0, 1] in the unit; :meth:`Ranges.scale` the other way round."""
        values: NDArray[np.float64] = self.low + self.width * scaled
        return values
