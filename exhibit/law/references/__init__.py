"""References to law in running text: UK rules, statutes, guides and cases, and the law of the European Union."""

from exhibit.law.references.corpus import ReferenceCorpus, find_references
from exhibit.law.references.reference import Kind, Reference, credit

__all__ = ["Kind", "Reference", "ReferenceCorpus", "credit", "find_references"]
