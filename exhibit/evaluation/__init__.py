"""Test any RAG system on bundles: targets, cases, metrics, statistics, results and report."""
