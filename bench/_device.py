"""Measures an NVIDIA device while a program runs: its utilisation, and the time of its kernels."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import fmean

_SETTLE = 0.5
"""The first seconds of a phase that are ignored: the device reports the utilisation of a moment ago."""
_PATIENCE = 5.0
"""The seconds that nvidia-smi has to end after it is terminated; then it is killed."""


class Watch:
    """Samples of an NVIDIA device's utilisation, each a time and a percentage."""

    def __init__(self) -> None:
        self.samples: list[tuple[float, float]] = []

    def compute_utilisation(self, start: float, end: float) -> float | None:
        """Return the mean utilisation between two times of `time.perf_counter`, as a share from 0 to 1.

        None if there is no sample between them. In an interval of more than a second, the first half second is
        ignored, since the device reports its utilisation with a delay.
        """
        if end - start > 2 * _SETTLE:
            start += _SETTLE
        told = [share for at, share in self.samples if start <= at <= end]
        return fmean(told) / 100 if told else None


@contextmanager
def watch_device() -> Iterator[Watch]:
    """Sample the device's utilisation ten times a second while the block runs.

    Without a device there are no samples.
    """
    watch = Watch()
    tool = shutil.which("nvidia-smi")
    if not tool:
        yield watch
        return
    query = [tool, "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-lms", "100"]
    process = subprocess.Popen(query, stdout=subprocess.PIPE, text=True)

    def read() -> None:
        for line in process.stdout or ():
            if line.strip().replace(".", "", 1).isdigit():
                watch.samples.append((time.perf_counter(), float(line)))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield watch
    finally:
        process.terminate()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:  # a tool that waits for its driver ignores the signal
            process.kill()
        reader.join(_PATIENCE)


def time_kernels(work: Callable[[], object]) -> float | None:
    """Run a function on the device; return the total seconds of its kernels, or None if the profile has none.

    Kernels run one after another on one stream, so the sum is the working time of the device; copies are not counted.
    """
    import torch
    from torch.autograd import DeviceType

    if not torch.cuda.is_available():
        work()
        return None
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        work()
        torch.cuda.synchronize()
    kernels = [event for event in profile.events() or () if event.device_type == DeviceType.CUDA]
    spans = [event.time_range.elapsed_us() for event in kernels if not event.name.startswith(("Memcpy", "Memset"))]
    return sum(spans) / 1e6 if spans else None
