"""Reading Parquet into shards and training on them, in one process or on a Dask cluster."""
