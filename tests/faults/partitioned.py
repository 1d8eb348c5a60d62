"""A gang of three of which one loses its network, in the namespaces of test_partition.py. To be run in namespace 0.

python -m tests.faults.partitioned FOLDER NAMESPACE_1
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from distributed import Client, LocalCluster

from benchmarks.namespaces import LINK, address
from tests.faults.placed import DYING_ROUND
from tests.faults.test_members_die import N_WORKERS, Trial, hash_alone, plan_in
from workers import plugin


@contextmanager
def worker_in(namespace: str, scheduler: str) -> Iterator[None]:
    """A worker of one thread there."""
    command = ["ip", "netns", "exec", namespace, sys.executable, "-m", "distributed.cli.dask_worker", scheduler]
    process = subprocess.Popen([*command, "--host", address(1), "--nthreads", "1", "--no-dashboard", "--no-nanny"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def main() -> None:
    """Errors: AssertionError."""
    folder, namespace = Path(sys.argv[1]), sys.argv[2]
    plan = plan_in(folder)
    expected = hash_alone(plan)
    with (
        LocalCluster(
            n_workers=N_WORKERS - 1, threads_per_worker=1, host=address(0), dashboard_address=f"{address(0)}:0"
        ) as cluster,
        Client(cluster) as client,
        worker_in(namespace, cluster.scheduler_address),
    ):
        plugin.register(client)
        client.wait_for_workers(N_WORKERS, timeout=60)
        trial = Trial(client, plan, folder)
        outcome = trial.train("unplugged", deadline_seconds=2.0, settle_seconds=0.0)
        [alone] = [lines[0].split()[2] for lines in trial.notes(0) if f"//{address(1)}:" in lines[0]]
        trial.assert_whole(outcome, expected, frozen=alone)
        assert outcome.workers == N_WORKERS - 1
        assert trial.first_round(1) == DYING_ROUND
        # back on the network it answers again, holds nothing of the job, and takes part in the next
        subprocess.run(["ip", "-n", namespace, "link", "set", LINK, "up"], check=True)
        after = Trial(client, plan, folder)
        outcome = after.train("undisturbed")
        after.assert_whole(outcome, expected)
        assert outcome.workers == N_WORKERS


if __name__ == "__main__":
    main()
