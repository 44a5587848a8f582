"""What a bundle is: models, JSON Schema, reading, writing, validation, errors."""

from schemas.errors import BundleError, DocumentError, ServiceError, SourceError, ToolkitError
from schemas.models import IMPOSSIBLE_ANSWER, BundleInfo, Context, Gold, How, Row

__version__ = "0.1.0"

__all__ = [
    "IMPOSSIBLE_ANSWER",
    "BundleError",
    "BundleInfo",
    "Context",
    "DocumentError",
    "Gold",
    "How",
    "Row",
    "ServiceError",
    "SourceError",
    "ToolkitError",
    "__version__",
]
