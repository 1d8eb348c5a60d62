"""What all tests share."""

from hypothesis import settings

# Kernels are compiled where they are first called, and machines are busy: no example is late.
settings.register_profile("edgewise", deadline=None)
settings.load_profile("edgewise")
