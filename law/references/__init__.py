"""References to law in running text: UK rules, statutes, guides and cases, and the law of the European Union."""

from law.references.corpus import ReferenceCorpus
from law.references.parse import references
from law.references.reference import Kind, Reference, credit

__all__ = ["Kind", "Reference", "ReferenceCorpus", "credit", "references"]
