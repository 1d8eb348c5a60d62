"""One file a weak learner; catalogue.py lists them."""
