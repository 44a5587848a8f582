"""Bundles made from bundles by rule: the altered twin, the contract as amended, the injected instruction."""
