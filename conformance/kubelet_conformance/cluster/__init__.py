"""Work on the machines of a Dask cluster (`--dask`): `client` hands it out, `worker` is what runs
there, `process` the processes that it is done in, `likeness` says whether client and worker have
the same package."""
