"""Makes variants of bundles by rule: with changed values, with amendments, with injected instructions."""
