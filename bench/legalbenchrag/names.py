"""The names of LegalBench-RAG's datasets and metrics in tables and pictures, in display order."""

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
"""Metrics for which a lower value is better."""
