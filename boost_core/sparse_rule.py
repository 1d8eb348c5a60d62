"""When single-label algorithms keep the sparse state. The model is the same either way, to the byte."""

from boost_core.config import Choice

# 200,000 rows, 20 features, trees of 8 leaves, 30 rounds: the dense state takes 28 s of processor time with 100 classes
# and in proportion to them, the sparse one about as much with any number.
SPARSE_CLASSES = 128


def keeps_sparse(weak_learner: Choice | None, n_classes: int) -> bool:
    """Whether a single-label algorithm with this weak learner does; every member of a gang finds the same."""
    if weak_learner is None or weak_learner.name != "tree" or weak_learner.parameters["criterion"] != "error":
        return False
    return n_classes >= SPARSE_CLASSES
