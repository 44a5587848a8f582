"""Review by experts: a sample on one page, the reviewers' agreement, and corrected gold as a patch."""
