"""CPU time of a benchmark."""

import psutil


def cpu_s() -> float:
    """CPU seconds of this process and its descendants, ended ones included."""
    here = psutil.Process()
    times = [each.cpu_times() for each in (here, *here.children(recursive=True))]
    return sum(t.user + t.system + t.children_user + t.children_system for t in times)
