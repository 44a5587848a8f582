"""The names that other tools have for our metrics and settings."""

from exhibit.schemas.parsing import read_beside

OTHER_NAMES: dict[str, dict[str, str]] = read_beside(__file__)
