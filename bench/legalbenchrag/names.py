"""What LegalBench-RAG's datasets and metrics are called in tables and pictures, in the order they are shown."""

from __future__ import annotations

DATASETS = {
    "ALL": "ALL",
    "privacy_qa": "PrivacyQA",
    "contractnli": "ContractNLI",
    "maud": "MAUD",
    "cuad": "CUAD",
}
METRICS = {"precision": "Precision", "recall": "Recall", "drm": "DRM"}
LOWER = frozenset({"drm"})
"""Metrics of which less is better."""
