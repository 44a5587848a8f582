"""The presets on LegalBench-RAG, compared with published figures."""
