"""What an NVIDIA device says of itself while something runs: how busy it was, and the time of its kernels."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import fmean

_SETTLE = 0.5
"""Seconds of a phase that are left out: the device tells of a time shortly before it is asked."""
_PATIENCE = 5.0
"""Seconds that the tool has to end when it is asked to; then it is made to."""


class Watch:
    """How busy the device was, in percent, with the time of each sample."""

    def __init__(self) -> None:
        self.samples: list[tuple[float, float]] = []

    def between(self, start: float, end: float) -> float | None:
        """Return the mean share between two times of `time.perf_counter`, None where nothing was told."""
        if end - start > 2 * _SETTLE:
            start += _SETTLE
        told = [share for at, share in self.samples if start <= at <= end]
        return fmean(told) / 100 if told else None


@contextmanager
def watched() -> Iterator[Watch]:
    """Ask the device ten times a second how busy it is while the block runs; nothing is told where there is none."""
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
        except subprocess.TimeoutExpired:  # a tool that waits for its driver does not hear
            process.kill()
        reader.join(_PATIENCE)


def kernel_seconds(work: Callable[[], object]) -> float | None:
    """Run something on the device; return the seconds that its kernels took in all, None where none is told of.

    They run one after another on one stream, so the sum is the time that the device worked; copies are not counted.
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
