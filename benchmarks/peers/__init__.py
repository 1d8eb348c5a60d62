"""Edgewise beside other boosting libraries: who gets to the lowest test error, and how fast."""
