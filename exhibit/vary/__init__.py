"""Makes variants of bundles by rule, for example with changed values, amendments or injected instructions."""
