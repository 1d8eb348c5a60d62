"""Pure mathematics of multiclass boosting: no I/O, no cluster, no clock."""
