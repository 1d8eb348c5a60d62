"""When single-label algorithms keep the sparse state. The model is the same either way, to the byte."""

from boost_core.config import Choice

# With so many classes the sparse state is faster and smaller (docs/performance.md).
SPARSE_CLASSES = 64


def keeps_sparse(weak_learner: Choice | None, n_classes: int) -> bool:
    """Whether a single-label algorithm with this weak learner does; every member of a gang finds the same."""
    if weak_learner is None or weak_learner.name != "tree" or weak_learner.parameters["criterion"] != "error":
        return False
    return n_classes >= SPARSE_CLASSES
