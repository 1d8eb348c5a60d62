"""The HTTP service, its job store, runner and model registry, and the command line."""
