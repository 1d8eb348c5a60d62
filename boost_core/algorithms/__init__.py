"""One file an algorithm; catalogue.py lists them."""
