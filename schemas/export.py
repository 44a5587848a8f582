"""The command `python -m schemas.export`: made in the hub's room, since PDFs are read on the way out."""

import runpy

if __name__ == "__main__":
    runpy.run_module("exhibit.hub.export", run_name="__main__", alter_sys=True)
