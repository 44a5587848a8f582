"""Tests any RAG system on bundles: targets, cases, metrics, statistics, results, report."""
