"""HTML pages about runs: the report, the comparison, the trend over time, the review by an expert, and a server."""
