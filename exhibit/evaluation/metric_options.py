"""The metrics of a run, and the options that they use: cutoffs, prices, a judge and official registers."""

from collections.abc import Callable, Mapping
from typing import Any

from exhibit.evaluation.metrics import KS, Options, find_needing, import_metrics, name_request
from exhibit.evaluation.registers import Register
from exhibit.evaluation.registers.client import Client
from exhibit.evaluation.settings import Settings
from exhibit.models.llms import LLM
from exhibit.runtime.plugins import load_plugin
from exhibit.storage.cache import find_cache_folder


def make_options(settings: Settings, judge: LLM | None, parts: Mapping[str, Any]) -> Options:
    """Return the options of the metrics; the judge is opened by its name in the settings if none is given."""
    depth = settings.config.depth if settings.target_name == "builtin" else max(KS)
    if judge is None and settings.judge:
        module, argument = load_plugin("exhibit.models.llms", settings.judge)
        own = {} if settings.timeout == Settings.model_fields["timeout"].default else {"timeout": settings.timeout}
        judge = module.open(argument, {"cache": (parts.get("cache") or find_cache_folder()) / "llm", **own})
    # a cutoff beyond the depth of the ranking would only repeat the last figure
    ks = tuple(k for k in KS if k <= depth) or (depth,)
    given = (settings.config.price_in, settings.config.price_out)
    prices = None if given == (None, None) else (given[0] or 0.0, given[1] or 0.0)
    client = Client(find_cache_folder() / "officials", timeout=settings.timeout)
    addresses = {"legislation": settings.legislation_url, "case_law": settings.case_law_url}
    return Options(
        ks=ks,
        parity=settings.parity,
        count_added=settings.count_added,
        judge=judge,
        votes=settings.judge_votes,
        prices=prices,
        officials=Register(client, **addresses) if settings.check_references else None,
        flag_below=settings.flag_below,
    )


def choose_names(settings: Settings, options: Options | None, say: Callable[[str], None]) -> tuple[str, ...]:
    """Return the requested metrics; if no judge is set, leave out the metrics that need a judge."""
    if options is None or options.judge is not None:
        return settings.metrics
    files = {file for file, module in import_metrics().items() if find_needing(module.NAMES, "judge")}
    judged = files | {name for file in files for name in import_metrics()[file].NAMES}
    left_out = [name for name in settings.metrics if name_request(name) in judged]
    if left_out:
        say(f"{', '.join(left_out)}: left out, because no judge is set; name a model with --judge")
    return tuple(name for name in settings.metrics if name not in left_out)
