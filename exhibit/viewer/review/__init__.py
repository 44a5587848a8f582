"""Review by an expert: a sample on one page, what reviewers agree on, and better gold as a patch."""
