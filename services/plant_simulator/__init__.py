"""A physics-based triplex pump that writes raw signals."""

from services.plant_simulator.assets import builtin_asset_type, builtin_asset_type_names, builtin_asset_type_path
from services.plant_simulator.measure import simulate_measurement
from services.plant_simulator.writer import simulate_plants

__all__ = [
    "builtin_asset_type",
    "builtin_asset_type_names",
    "builtin_asset_type_path",
    "simulate_measurement",
    "simulate_plants",
]
