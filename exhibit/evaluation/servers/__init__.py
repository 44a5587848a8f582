"""The client for every system that a TOML file describes: requests, answers, passages, documents."""
