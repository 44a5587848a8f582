"""`exhibit view`: one server on a loopback address over bundles and runs, which saves reviews at once."""
