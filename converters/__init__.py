"""Raw benchmark files in, bundles out: one module per benchmark."""
