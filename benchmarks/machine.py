"""On what machine, and with which versions, a figure was measured."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("edgewise", "numpy", "numba", "distributed", "xgboost-cpu", "lightgbm", "catboost", "scikit-learn")


def describe_machine() -> dict[str, Any]:
    """JSON-ready: processor, cores, system, versions of what is installed, and how busy the machine is."""
    return {
        "processor": processor_name(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: found for name in PACKAGES if (found := installed_version(name))},
        "load_1_minute": round(os.getloadavg()[0], 2),
    }


def processor_name() -> str:
    """The processor's model, as far as the system tells."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def installed_version(name: str) -> str | None:
    """Version of a distribution, None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def machine_line() -> str:
    """One line for the head of a printed table."""
    facts = describe_machine()
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    return f"{facts['processor']}, {facts['cores']} cores, load {facts['load_1_minute']}; {versions}"
