"""Published figures, trained again: python -m benchmarks.papers --help."""
