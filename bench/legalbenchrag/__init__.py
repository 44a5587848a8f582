"""Our presets on LegalBench-RAG, beside the figures that papers published."""
