"""Where the pages of MLflow and Prefect are, as text: they are other servers, and ours load nothing from them."""

from __future__ import annotations

from api.backend.addresses import without_secrets
from services.process.settings import Settings


def pages_of(settings: Settings) -> dict[str, str]:
    """Addresses of the other pages, by name, without passwords; without MLflow where its store has no pages."""
    tracking = settings.mlflow.tracking_uri
    if not tracking:
        mlflow = settings.mlflow.own_url
    else:
        mlflow = tracking if tracking.startswith(("http://", "https://")) else ""
    found = {"MLflow": mlflow, "Prefect": settings.prefect_api_url.removesuffix("/api")}
    return {name: without_secrets(address) for name, address in found.items() if address}
