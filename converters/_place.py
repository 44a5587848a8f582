"""Bundles are put into place as every folder of this project is."""

from schemas.place import check_free, placed

__all__ = ["check_free", "placed"]
