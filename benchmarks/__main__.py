"""Runs every benchmark that needs no data of its own, one after another."""

import subprocess
import sys

BENCHMARKS = ("kernel", "rounds", "classes", "collective")


def main() -> None:
    """Pass the arguments on to each."""
    for name in BENCHMARKS:
        print(f"== {name}", flush=True)
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *sys.argv[1:]], check=True)


if __name__ == "__main__":
    main()
