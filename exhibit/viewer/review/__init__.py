"""Review by experts: a sample of questions on one page, the reviewers' agreement, and a patch of the gold."""
