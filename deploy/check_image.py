"""Run while the image is built: what was made smaller still does what the service needs of it."""

import io

import cryptography.x509
import distributed
import llvmlite.binding
import msgpack
import numba
import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
import pydantic
import sqlalchemy
import yaml


@numba.njit
def twice(values: np.ndarray) -> np.ndarray:
    return values * 2


def main() -> None:
    """Compile a kernel, solve with BLAS, write and read Parquet, ask a database, and name the rest."""
    assert twice(np.arange(3)).tolist() == [0, 2, 4]
    assert np.allclose(np.linalg.solve(np.eye(2), [1.0, 2.0]), [1.0, 2.0])
    table = pa.table({"number": [1, 2], "name": pa.array(["a", "b"]).dictionary_encode()})
    for compression in ("snappy", "zstd", "gzip", "brotli", "lz4"):
        file = io.BytesIO()
        pyarrow.parquet.write_table(table, file, compression=compression)
        assert pyarrow.parquet.read_table(io.BytesIO(file.getvalue()))["number"].to_pylist() == [1, 2]
    assert pyarrow.compute.sum(table["number"]).as_py() == 3
    with sqlalchemy.create_engine("sqlite://").connect() as connection:
        assert connection.execute(sqlalchemy.text("SELECT 1")).scalar() == 1
    assert msgpack.unpackb(msgpack.packb([1])) == [1]
    assert yaml.load("a: 1", yaml.CSafeLoader) == {"a": 1}
    assert psycopg.pq.version()
    assert all((cryptography.x509, distributed, llvmlite.binding, pyarrow.csv, pyarrow.dataset, pydantic))


main()
