"""Which faults befall what, for how long and after which pause: all of it drawn from a seed before anything starts."""

from __future__ import annotations

import random
from dataclasses import dataclass

OFFICE = ("flows", "flow run", "nats", "api", "prefect", "mlflow")
"""Processes of the OEM's side, by the name that ``ballast up`` gives them; a flow run is a child of the flows."""
PLANTS = ("plant-1", "plant-2", "plant-3")


@dataclass(frozen=True)
class Fault:
    """``kind`` befalls ``target`` for ``hold`` seconds (0: an instant), ``pause`` seconds after the fault before it."""

    number: int
    kind: str
    target: str
    pause: float
    hold: float

    @property
    def name(self) -> str:
        """Kind and target, as the table counts them."""
        return f"{self.kind} {self.target}".strip()


def kinds(database: str) -> dict[str, tuple[float, tuple[str, ...], tuple[float, float]]]:
    """Each kind with its weight, what it may befall, and the shortest and longest hold in seconds."""
    servers = ("postgresql",) if database == "postgresql" else ()
    return {
        # What drives a training, and what it needs at every moment, is struck more often than what it needs at its end.
        "kill": (6.0, (*OFFICE, "flow run", "nats", *PLANTS, *servers, *servers), (0.0, 0.0)),
        # The lease holds three seconds: longer than that, and another process takes the run over.
        "stop": (5.0, ("flows", "flow run", "flow run", "nats", "api", *PLANTS, *servers), (0.5, 8.0)),
        "kill everything": (0.6, ("",), (0.0, 0.0)),
        "disk full": (2.0, ("flow run", "flows", "api", *PLANTS, *servers), (0.5, 3.0)),
        "store locked": (2.0, ("",), (0.5, 6.0)),
        "false tasks": (1.0, PLANTS, (0.0, 0.0)),
        "false answers": (1.5, PLANTS, (1.0, 4.0)),
        "cancel": (0.4, ("",), (0.0, 0.0)),
    }


def schedule(seed: int, count: int, database: str) -> list[Fault]:
    """The faults of a seed, in their order."""
    draw, table = random.Random(f"chaos {database} {seed}"), kinds(database)
    faults = []
    for number in range(1, count + 1):
        kind = draw.choices(list(table), [weight for weight, _, _ in table.values()])[0]
        _, targets, (shortest, longest) = table[kind]
        target, pause = draw.choice(targets), round(draw.uniform(0.2, 4.0), 2)
        faults.append(Fault(number, kind, target, pause, round(draw.uniform(shortest, longest), 2)))
    return faults
