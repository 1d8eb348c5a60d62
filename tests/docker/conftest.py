"""One cluster for all tests of this folder, brought up from the sources and taken down with its volumes."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.builders import REAL_DATA
from tests.docker.cluster import PROJECT, Cluster, running

LETTER = REAL_DATA / "letter.train.parquet"


@pytest.fixture(scope="session")
def docker_data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data root that containers can read: letter where the data are at hand, else digits."""
    folder = Path("/var/tmp") / f"edgewise-docker-{os.getpid()}"
    folder.mkdir(mode=0o755)
    if LETTER.exists():
        shutil.copyfile(LETTER, folder / "train.parquet")
    else:
        from sklearn.datasets import load_digits

        pixels, labels = load_digits(return_X_y=True)
        columns = {f"p{number}": column.astype(np.int16) for number, column in enumerate(pixels.T)}
        pq.write_table(pa.table(columns | {"label": [f"d{label}" for label in labels]}), folder / "train.parquet")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def cluster(docker_data: Path) -> Iterator[Cluster]:
    """A cluster with 3 workers that has just come up."""
    with running(Cluster(PROJECT, docker_data, workers=3)) as found:
        yield found


@pytest.fixture(scope="module")
def hasty(docker_data: Path) -> Iterator[Cluster]:
    """The same with short deadlines, so that faults are noticed within seconds."""
    files = ("compose.yml", "tests/docker/compose.hasty.yml")
    with running(Cluster(f"{PROJECT}-hasty", docker_data, 3, files)) as found:
        yield found
