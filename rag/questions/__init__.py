"""Words, sentences, figures and citations: what the pipeline and its metrics know of language."""
