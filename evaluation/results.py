"""The commands over runs under the name that the documentation has: `python -m evaluation.results`."""

import runpy

if __name__ == "__main__":
    # they draw pages, so they are made one floor up
    runpy.run_module("exhibit.viewer.results", run_name="__main__", alter_sys=True)
