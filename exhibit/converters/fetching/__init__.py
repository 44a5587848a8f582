"""The web as a source: what may be reached, how it is fetched, printed and kept."""
