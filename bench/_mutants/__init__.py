"""The parts of `bench.mutants`: changes to code, the tests that reach each of them, trials, and the page."""
