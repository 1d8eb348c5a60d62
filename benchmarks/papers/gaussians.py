"""Three Gaussians in the plane (Saberian & Vasconcelos 2011, section 5): draws, and the rule of Bayes."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MEANS = np.array([[1.0, 2.0], [-1.0, 0.0], [2.0, -1.0]])
COVARIANCES = np.array([[[1.0, 0.5], [0.5, 2.0]], [[1.0, 0.3], [0.3, 1.0]], [[0.4, 0.1], [0.1, 0.8]]])


def draw(random: np.random.Generator, n_rows: int) -> tuple[Floats, NDArray[np.int64]]:
    """(points [n_rows, 2], labels [n_rows]); all classes are as likely."""
    labels = random.integers(0, MEANS.shape[0], n_rows)
    roots = np.linalg.cholesky(COVARIANCES)
    noise = random.normal(size=(n_rows, 2))
    return MEANS[labels] + np.einsum("nij,nj->ni", roots[labels], noise), labels


def bayes_error(points: Floats, labels: NDArray[np.int64]) -> float:
    """Error of the class with the greatest density, as a fraction."""
    apart = points[:, np.newaxis] - MEANS
    squares = np.einsum("nki,kij,nkj->nk", apart, np.linalg.inv(COVARIANCES), apart)
    densities = -0.5 * (squares + np.log(np.linalg.det(COVARIANCES)))
    return float(np.mean(densities.argmax(axis=1) != labels))


def write(path: Path, points: Floats, labels: NDArray[np.int64]) -> Path:
    """A Parquet file with the columns x, y and label."""
    pq.write_table(pa.table({"x": points[:, 0], "y": points[:, 1], "label": labels}), path)
    return path
