"""Language models: one file per way to reach one; its name is its name on the command line."""
