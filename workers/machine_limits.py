"""What this process may use: cores and memory, as its container limits them (cgroups, version 1 and 2)."""

import math
import os
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
UNLIMITED = 1 << 60  # version 1 writes "no limit" as a number near 2^63


def cpu_limit(cgroups: Path = CGROUPS) -> int:
    """Cores that this process may use, at least 1: those it may run on, or less where its time is limited."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota(cgroups)
    # Half a core is a thread too; with 2.5 cores a third thread would only wait.
    return cores if quota is None else max(1, min(cores, math.floor(quota)))


def memory_limit(cgroups: Path = CGROUPS) -> int:
    """Bytes that this process may use."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        text = _read(cgroups / name)
        if text.isdigit() and 0 < int(text) < UNLIMITED:
            return min(physical, int(text))
    return physical


def _quota(cgroups: Path) -> float | None:
    """Cores' worth of time; None without a limit."""
    quota, _, period = _read(cgroups / "cpu.max").partition(" ")
    if not quota:
        for folder in ("cpu", "cpu,cpuacct"):
            quota = _read(cgroups / folder / "cpu.cfs_quota_us") or quota
            period = _read(cgroups / folder / "cpu.cfs_period_us") or period
    # "max" (version 2) and -1 (version 1) are no limit.
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() and int(period) else None


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
