"""Packs the rooms below `exhibit/`, as they are imported: `exhibit.rag` in a checkout and in the wheel alike.

Everything else about the package is in pyproject.toml. In a checkout the rooms lie beside `exhibit/`.
"""

from setuptools import find_namespace_packages, setup

ROOMS = [
    "schemas",
    "storage",
    "engine",
    "evidence",
    "law",
    "models",
    "hub",
    "converters",
    "rag",
    "draft",
    "evaluation",
    "viewer",
]

# folders of data, which have no __init__.py, are among them
PACKAGES = [name for room in ROOMS for name in [room, *find_namespace_packages(include=[f"{room}.*"])]]

# what `exhibit demo` converts comes with the package
setup(
    packages=["exhibit", "exhibit.samples", *(f"exhibit.{name}" for name in PACKAGES if "__pycache__" not in name)],
    package_dir={f"exhibit.{room}": room for room in [*ROOMS, "samples"]},
)
