"""Review by an expert under the name that the documentation has: `python -m review`."""

from __future__ import annotations

import runpy

if __name__ == "__main__":
    runpy.run_module("exhibit.viewer.review", run_name="__main__", alter_sys=True)
