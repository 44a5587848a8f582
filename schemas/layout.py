"""The names of the files that make a bundle."""

from __future__ import annotations

CORPUS = "corpus"
TRAIN = "train.json"
GOLD = "gold.jsonl"
INFO = "bundle.json"
CARD = "README.md"
ORIGIN = ".exhibit-origin.json"
"""In a folder of the cache: the URL of the bundle whose small files it holds."""
PARTIAL = "bundle.partial"
"""An object that stands beside the files while they are written: what a killed run leaves is known by it."""
