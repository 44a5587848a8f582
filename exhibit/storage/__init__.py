"""Where bytes are: paths and URLs, caches, locks, and output that appears whole or not at all."""
