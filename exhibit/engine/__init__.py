"""Applies a function to many documents or questions; each engine is one file, named by `--engine`."""

from collections.abc import Callable
from typing import Any, cast

from exhibit.engine import runners
from exhibit.engine.limits import Limits, add_limit_arguments, apply_limits, get_limits, is_worker, read_limits
from exhibit.engine.outcome import Engine, In, Out, Outcome, track
from exhibit.engine.worker import Worker, shutdown_idle
from exhibit.runtime.command import parse_positive
from exhibit.runtime.plugins import list_plugins, load_plugin
from exhibit.schemas.errors import ToolkitError

__all__ = [
    "Engine", "Limits", "Outcome", "Worker", "add_engine_arguments", "add_limit_arguments", "apply_limits",
    "check_engine", "list_engines", "open_engine", "parse_positive", "read_limits", "run_in_worker",
    "shutdown_idle", "track",
]  # fmt: skip

_DEFAULT = Limits()


def open_engine(
    wanted: str = "local", *, jobs: int | None = None, items: int | None = None, limits: Limits | None = _DEFAULT
) -> Engine:
    runner, address = _open_runner(wanted)
    if limits is None and (items == 1 or (jobs == 1 and not runner.takes_address)):
        runner, address = _open_runner("serial")
    elif items == 1 and runner.takes_address:
        runner, address = _open_runner("local")
    return cast(Engine, runner(jobs=1 if items == 1 else jobs, address=address, limits=limits))


def run_in_worker(function: Callable[[In], Out], item: In, *, limits: Limits | None = None) -> Out:
    if is_worker():
        return function(item)
    (outcome,) = open_engine("local", items=1, limits=limits or get_limits()).map(function, [item])
    return outcome.unwrap()


def check_engine(wanted: str) -> str:
    """Return the engine's name unchanged; raise an error if it is unknown or its package is not installed."""
    _open_runner(wanted)
    return wanted


def list_engines() -> list[str]:
    return list_plugins(runners.__name__)


def add_engine_arguments(parser: Any) -> None:
    what = (
        f"the engine that runs the work: {', '.join(list_engines())}; ray:auto or ray:ray://HOST:10001 joins a cluster "
        "(default: local, processes on this machine)"
    )
    parser.add_argument("--engine", metavar="NAME", default="local", help=what)
    parser.add_argument("--jobs", type=parse_positive, metavar="N", help="number of workers (default: one per CPU)")
    add_limit_arguments(parser)


def _open_runner(wanted: str) -> tuple[Any, str]:
    name, _, address = wanted.partition(":")
    if name not in list_engines():
        raise ToolkitError(f"no engine {name!r}; choose one of {', '.join(list_engines())}")
    try:
        runner = load_plugin(runners.__name__, name)[0].Runner
    except ModuleNotFoundError as error:
        if error.name != name:  # an engine and the package that it needs have the same name
            raise
        raise ToolkitError(f"--engine {name} needs an extra: pip install 'exhibit-rag[{name}]'") from error
    if address and not runner.takes_address:
        raise ToolkitError(f"--engine {name} runs on this machine and takes no address; remove {address!r}")
    return runner, address
