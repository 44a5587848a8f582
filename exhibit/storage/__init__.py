"""Where bytes are stored: paths and URLs, caches, locks, and atomic writes of files and folders."""
