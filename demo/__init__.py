"""A tour of the product on real data, run by `make demo`."""
