"""Packs the rooms below `exhibit/_rooms`: none of their names, which are plain words, becomes a top-level module.

Everything else about the package is in pyproject.toml. In the project's own folder the rooms lie beside `exhibit`.
"""

from setuptools import find_namespace_packages, setup

ROOMS = ["schemas", "storage", "engine", "evidence", "law", "hub", "converters", "rag", "evaluation", "review"]
INSIDE = "exhibit._rooms"

# folders of data, which have no __init__.py, are among them
FOUND = [name for room in ROOMS for name in [room, *find_namespace_packages(include=[f"{room}.*"])]]

setup(
    packages=["exhibit", *(f"{INSIDE}.{name}" for name in FOUND if "__pycache__" not in name)],
    package_dir={f"{INSIDE}.{room}": room for room in ROOMS},
)
