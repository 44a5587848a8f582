"""The one client for every system that is described by a TOML file: requests, answers, passages, documents."""
