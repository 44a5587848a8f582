"""The YAML at the top of a README: what the Hub reads from it, and what it refuses."""

from __future__ import annotations

import re
from typing import Any

import yaml

LICENCES = """
apache-2.0 mit openrail bigscience-openrail-m creativeml-openrail-m afl-3.0 artistic-2.0 bsl-1.0 bsd bsd-2-clause
bsd-3-clause bsd-3-clause-clear c-uda cc cc0-1.0 cc-by-2.0 cc-by-2.5 cc-by-3.0 cc-by-4.0 cc-by-sa-3.0 cc-by-sa-4.0
cc-by-nc-2.0 cc-by-nc-3.0 cc-by-nc-4.0 cc-by-nd-4.0 cc-by-nc-nd-3.0 cc-by-nc-nd-4.0 cc-by-nc-sa-2.0 cc-by-nc-sa-3.0
cc-by-nc-sa-4.0 cdla-sharing-1.0 cdla-permissive-1.0 cdla-permissive-2.0 wtfpl ecl-2.0 epl-1.0 epl-2.0 etalab-2.0
eupl-1.1 eupl-1.2 agpl-3.0 gfdl gpl gpl-2.0 gpl-3.0 lgpl lgpl-2.1 lgpl-3.0 isc lppl-1.3c ms-pl mpl-2.0 odc-by odbl
openrail++ osl-3.0 postgresql ofl-1.1 ncsa unlicense zlib pddl unknown other
""".split()
SIZES = re.compile(
    r"n<1K|1K<n<10K|10K<n<100K|100K<n<1M|1M<n<10M|10M<n<100M|100M<n<1B|n>1T|1B<n<10B|10B<n<100B|100B<n<1T"
)


def front_matter(readme: str) -> dict[str, Any]:
    """Return the YAML metadata of a card; raise ValueError if it is missing or invalid."""
    found = re.match(r"\ufeff?\s*---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|$)", readme, re.DOTALL)
    if not found:
        return {}
    try:
        data = yaml.safe_load(found[1])
    except yaml.YAMLError as error:
        raise ValueError(f"YAML metadata is invalid: {error}") from None
    if data is not None and not isinstance(data, dict):
        raise ValueError("YAML metadata must be an object")
    return data or {}


def check(readme: str) -> tuple[list[str], list[str]]:
    """Return the errors and the warnings that the Hub would name for a dataset's card."""
    try:
        data = front_matter(readme)
    except ValueError as error:
        return [str(error)], []
    if not data:
        return [], ["empty or missing yaml metadata in repo card"]
    errors = []
    for licence in _listed(data.get("license")):
        if licence not in LICENCES:
            errors.append(f'"license" must be one of {LICENCES}, not {licence!r}')
    for size in _listed(data.get("size_categories")):
        if not isinstance(size, str) or not SIZES.fullmatch(size):
            errors.append(f'"size_categories" must not hold {size!r}')
    for name in ("pretty_name", "license_name", "license_link"):
        if not isinstance(data.get(name, ""), str):
            errors.append(f'"{name}" must be a string')
    return errors + _check_configs(data.get("configs", [])), []


def _check_configs(configs: object) -> list[str]:
    if not isinstance(configs, list):
        return ['"configs" must be an array']
    errors, names = [], []
    for number, config in enumerate(configs):
        if not isinstance(config, dict) or not isinstance(config.get("config_name"), str):
            errors.append(f'"configs[{number}].config_name" is required')
            continue
        names.append(config["config_name"])
        files = config.get("data_files")
        if isinstance(files, list) and not all(isinstance(one, str | dict) for one in files):
            errors.append(f'"configs[{number}].data_files" does not match any of the allowed types')
    if len(names) != len(set(names)):
        errors.append('"configs" contains a duplicate value')
    return errors


def tags(data: dict[str, Any]) -> list[str]:
    """Return the tags that the Hub derives from a card."""
    found = [
        f"{name}:{value}"
        for name in ("task_categories", "language", "license", "size_categories")
        for value in _listed(data.get(name))
    ]
    return [*found, *map(str, _listed(data.get("tags"))), "region:us"]


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]
