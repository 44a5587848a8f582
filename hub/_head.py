"""The card's head: what the Hub indexes, and the configs that `load_dataset` reads."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import yaml

from exhibit.hub._tables import Config
from exhibit.schemas.models import BundleInfo, Licence

_SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
)

LICENCES = frozenset(
    "apache-2.0 mit afl-3.0 artistic-2.0 bsl-1.0 bsd bsd-2-clause bsd-3-clause bsd-3-clause-clear c-uda cc cc0-1.0 "
    "cc-by-2.0 cc-by-2.5 cc-by-3.0 cc-by-4.0 cc-by-sa-3.0 cc-by-sa-4.0 cc-by-nc-2.0 cc-by-nc-3.0 cc-by-nc-4.0 "
    "cc-by-nd-4.0 cc-by-nc-nd-3.0 cc-by-nc-nd-4.0 cc-by-nc-sa-2.0 cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 "
    "cdla-sharing-1.0 cdla-permissive-1.0 cdla-permissive-2.0 ecl-2.0 epl-1.0 epl-2.0 etalab-2.0 eupl-1.1 eupl-1.2 "
    "agpl-3.0 gfdl gpl gpl-2.0 gpl-3.0 lgpl lgpl-2.1 lgpl-3.0 isc mpl-2.0 ms-pl ncsa odbl odc-by pddl ofl-1.1 "
    "osl-3.0 postgresql unlicense wtfpl zlib unknown other".split()
)
"""The identifiers that the Hub knows for data; it refuses a card with another."""


def head(
    bundle: BundleInfo, configs: Sequence[Config], *, tags: Sequence[str], annotations: Sequence[str], derived: str
) -> str:
    """Return the YAML between the card's dashes."""
    asked = bundle.counts.questions > 0
    paged = any(document.pages for document in bundle.documents)
    fields: dict[str, Any] = {
        **_licence(bundle.licence),
        "language": ["en"],
        "multilinguality": ["monolingual"],
        "pretty_name": bundle.title,
        "task_categories": ["question-answering", "text-retrieval"] if asked else ["text-retrieval"],
        "task_ids": ["closed-domain-qa", "document-retrieval"] if asked else ["document-retrieval"],
    }
    if annotations:
        fields["annotations_creators"] = list(annotations)
    if derived:
        fields["source_datasets"] = [f"extended|other-{derived}"]
    words = [*tags, "rag", "retrieval-augmented-generation", *(["pdf"] if paged else [])]
    fields["tags"] = list(dict.fromkeys(words))
    fields["size_categories"] = [size_category(bundle.counts.questions or bundle.counts.documents)]
    fields["configs"] = [_config(config, default=not index) for index, config in enumerate(configs)]
    fields["dataset_info"] = [
        {
            "config_name": config.name,
            "features": config.features,
            "splits": [{"name": "train", "num_bytes": config.bytes, "num_examples": config.rows}],
        }
        for config in configs
    ]
    return dump(fields)


def size_category(rows: int) -> str:
    """Return the Hub's name for a number of rows."""
    return next((name for limit, name in _SIZES if rows < limit), "10M<n<100M")


def _config(config: Config, *, default: bool) -> dict[str, Any]:
    return {
        "config_name": config.name,
        **({"default": True} if default else {}),
        "data_files": [{"split": "train", "path": config.path}],
    }


def _licence(licence: Licence) -> dict[str, str]:
    """Return the licence by the Hub's identifier, or as `other` with a name that the Hub takes."""
    if licence.id in LICENCES - {"other"}:
        return {"license": licence.id}
    name = re.sub(r"[^a-z0-9.]+", "-", licence.name.lower()).strip("-.") or "unnamed"
    link = {"license_link": licence.url} if licence.url else {}
    return {"license": "other", "license_name": name, **link}


_PLAIN = re.compile(r"(?!(?:true|false|yes|no|on|off|null|y|n)$)[a-z][a-z0-9_]*", re.IGNORECASE)


class _Quoting(yaml.SafeDumper):
    """Quotes every text that could be read as something else."""

    def ignore_aliases(self, _: Any) -> bool:
        """Write what is there twice in full."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    whole = re.sub("[\ud800-\udfff]", "\ufffd", text)
    return dumper.represent_str(whole) if _PLAIN.fullmatch(text) else dumper.represent_scalar(_STRING, whole, style='"')


_STRING = "tag:yaml.org,2002:str"
_Quoting.add_representer(str, _text)


def dump(value: dict[str, Any]) -> str:
    """Return a mapping as YAML, in its own order."""
    return str(yaml.dump(value, Dumper=_Quoting, sort_keys=False, allow_unicode=True, width=math.inf))
