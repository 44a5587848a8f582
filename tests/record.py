"""Store the results of a checkout on the samples and on real data, and compare another checkout with them.

    python tests/record.py make STORE --checkout PATH
    python tests/record.py compare STORE --checkout PATH --quick --only bundles

The program calls the command line and reads its output files, so it works on any checkout. With `--quick` it uses only
the samples. Otherwise it also converts and evaluates the benchmarks of EXHIBIT_DATA (or ../shared/data), which takes
half an hour on two cores. STORE is a folder outside the repository. Exit code 1 means that a result differs.
"""

import argparse
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
Facts = dict[str, str]

SAMPLES = "cuad contractnli maud privacyqa cpr statutes acord legalbenchrag legalquad squad table".split()
PRESETS = "bm25 careful naive rcts routed sac sac-multilayer seed tfidf".split()
SHOWN_DIFFERENCES = 12
SHOWN_CHARS = 300
VOLATILE_SCORES = {"latency", "first_token", "cost"}
VERBS: dict[str, list[list[str]]] = {
    "validate": [["validate", "BUNDLE"]],
    "check": [["validate", "BUNDLE", "--documents"], ["check", "BUNDLE"]],
    "show": [["show", "BUNDLE", "33", "--out", "gold.png"]],
    "export squad": [["export", "BUNDLE", "--to", "squad", "--out", "squad"]],
    "export beir": [["export", "BUNDLE", "--to", "beir", "--out", "beir"]],
    "export legalbenchrag": [["export", "BUNDLE", "--to", "legalbenchrag", "--out", "lbr"]],
    "text": [["export", "BUNDLE", "--to", "text", "--out", "texts"], ["text", "BUNDLE", "--out", "texts"]],
    "index": [["index", "BUNDLE/corpus", "--out", "index"]],
    "search": [["search", "index", "which law governs?"]],
    "ask": [["ask", "index", "Which law governs the hosting agreement?"]],
    "vary figures": [["vary", "BUNDLE", "--kind", "figures", "--out", "figures"]],
    "vary removed": [["vary", "BUNDLE", "--kind", "removed", "--out", "removed"]],
    "draft": [["draft", "BUNDLE/corpus", "--out", "drafted"]],
    "report": [["results", "report", "RUN"]],
    "diff": [["results", "diff", "RUN", "RUN"]],
    "unknown bundle": [["evaluate", "nowhere"]],
    "unknown verb": [["nonsense"]],
}
"""The commands by purpose; the first spelling that the checkout knows is run."""


class Recorder:
    """Runs the commands of a checkout and reads facts, which are texts by name, from their output files."""

    def __init__(self, checkout: Path, store: Path, scratch: Path) -> None:
        self.checkout, self.store, self.scratch = checkout, store, scratch
        python = checkout / ".venv" / "bin" / "python"
        self.python = str(python if python.exists() else sys.executable)

    def call(self, *words: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"PYTHONPATH": str(self.checkout)}
        return subprocess.run(
            [self.python, "-m", "exhibit", *map(str, words)],
            cwd=cwd or self.scratch,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def convert(self, name: str, converter: str, source: Path, *flags: str) -> Facts:
        """Return the rows, the gold and the checksums of the documents of a converted source."""
        out = self.scratch / name
        result = self.call("convert", converter, "--source", source, "--out", out, "--force", *flags)
        if result.returncode:
            return {"exit code": f"{result.returncode} {result.stderr[-600:]}"}
        facts = dict(read_bundle(out))
        self.keep_bundle(name, out)
        return facts

    def keep_bundle(self, name: str, out: Path) -> None:
        """Move the bundle into the store unless the store has it; all checkouts evaluate the stored bundle."""
        kept = self.store / "bundle" / name
        if not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(out, kept)
        else:
            shutil.rmtree(out)

    def evaluate(self, name: str, bundles: list[str], *flags: str) -> Facts:
        """Return the ranking, the reply and the scores of every question of a run over stored bundles."""
        results = self.scratch / "results"
        folders = [self.store / "bundle" / bundle for bundle in bundles]
        words = ["--output-dir", results, "--run-name", name, "--file-type", "all", *flags]
        result = self.call("evaluate", *folders, *words)
        if result.returncode:
            return {"exit code": f"{result.returncode} {result.stderr[-600:]}"}
        return dict(read_run(results / name))

    def run_verb(self, spellings: list[list[str]]) -> Facts:
        """Return the exit code and the output of a verb on the sample of CUAD."""
        result = None
        for words in spellings:
            paths = [self.fill_in(word) for word in words]
            result = self.call(*paths)
            if result.returncode != 2:
                break
        assert result is not None
        return {"exit code": str(result.returncode), "output": self.normalise(result.stdout + result.stderr)}

    def fill_in(self, word: str) -> str:
        bundle, run = self.store / "bundle" / "sample-cuad", self.scratch / "results" / "demo"
        return word.replace("BUNDLE", str(bundle)).replace("RUN", str(run))

    def normalise(self, text: str) -> str:
        """Replace folders and times, which differ between runs."""
        for folder, mark in ((self.scratch, "SCRATCH"), (self.store, "STORE"), (self.checkout, "CHECKOUT")):
            text = text.replace(str(folder), mark)
        text = re.sub(r"\x1b\[[0-9;]*\w|.*\r(?!\n)", "", text)
        return re.sub(r"\d+(\.\d+)? ?(s|ms|seconds|MB|MiB)\b", "TIME", text)

    def read_first_screen(self) -> Facts:
        """Return the text of the first screens of the demo's report in a browser."""
        from playwright.sync_api import sync_playwright

        report = self.scratch / "results" / "demo" / "report.html"
        if not report.is_file():
            return {"report": "missing"}
        with sync_playwright() as playwright:
            path = shutil.which("chromium")
            browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page(viewport={"width": 1400, "height": 900})
            page.goto(report.as_uri())
            text = page.inner_text("body")[:4000]
            browser.close()
        return {f"line {number:03}": line for number, line in enumerate(self.normalise(text).splitlines())}


def read_bundle(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the facts of a bundle: its rows, its gold, its documents."""
    for row in json.loads((folder / "train.json").read_text(encoding="utf-8")):
        yield f"train {row['id']} {row['question'][:120]}", json.dumps(row, ensure_ascii=False)
    with (folder / "gold.jsonl").open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            yield f"gold line {number}", line.rstrip("\n")
    for path in sorted((folder / "corpus").rglob("*")):
        if path.is_file():
            name = path.relative_to(folder / "corpus").as_posix()
            yield f"document {name}", hashlib.sha256(path.read_bytes()).hexdigest()


def read_run(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the facts of a run: for each question its ranking, its reply, its outcome and each score."""
    for path in sorted(folder.glob("*/eval_results.jsonl")):
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                yield from read_question(path.parent.name, json.loads(line))


def read_question(dataset: str, row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the facts of one question of a run."""
    key = f"{dataset} {row['id']} {row['question'][:120]}"
    reply = row["reply"]
    ranking = [[passage.get("filename"), passage.get("span")] for passage in reply.get("passages", [])]
    yield f"{key} | ranking", json.dumps(ranking, ensure_ascii=False)
    answer = {name: reply.get(name) for name in ("answer", "refused", "citations", "error")}
    yield f"{key} | reply", json.dumps(answer, ensure_ascii=False)
    yield f"{key} | outcome", json.dumps([row.get("outcome", row.get("verdict")), row.get("lost_at")])
    for name, score in sorted(row.get("scores", {}).items()):
        if name not in VOLATILE_SCORES:
            yield f"{key} | score {name}", json.dumps(score if score is None else round(score, 6))


def list_probes(recorder: Recorder, *, quick: bool) -> dict[str, dict[str, Callable[[], Facts]]]:
    """Return the recorded steps by group and name, in the order in which they must run."""
    samples = ROOT / "samples"
    bundles: dict[str, Callable[[], Facts]] = {
        f"sample-{name}": lambda name=name: recorder.convert(f"sample-{name}", name, samples / name)  # type: ignore[misc]
        for name in SAMPLES
    }
    demo = [f"sample-{name}" for name in SAMPLES[:6]]
    runs: dict[str, Callable[[], Facts]] = {"demo": lambda: recorder.evaluate("demo", demo)}
    for preset in PRESETS:
        runs[f"preset-{preset}"] = lambda preset=preset: recorder.evaluate(  # type: ignore[misc]
            f"preset-{preset}", ["sample-cuad"], "--preset", preset, "--limit", "60"
        )
    if not quick:
        data = find_data()
        for name, converter, source, flags in list_benchmarks(data, recorder.scratch):
            bundles[name] = lambda name=name, converter=converter, source=source, flags=flags: recorder.convert(  # type: ignore[misc]
                name, converter, source, *flags
            )
        runs["ohr"] = lambda: recorder.evaluate("ohr", ["ohr"])
        runs["mini"] = lambda: recorder.evaluate("mini", ["legalbenchrag"])
    verbs = {
        name: (lambda spellings=spellings: recorder.run_verb(spellings))  # type: ignore[misc]
        for name, spellings in VERBS.items()
    }
    return {"bundles": bundles, "runs": runs, "verbs": verbs, "report": {"first-screen": recorder.read_first_screen}}


def find_data() -> Path:
    """Return the folder of real benchmark files."""
    for folder in (os.environ.get("EXHIBIT_DATA"), ROOT.parent / "shared" / "data"):
        if folder and Path(folder).is_dir():
            return Path(folder)
    sys.exit("error: no real data; set EXHIBIT_DATA, or use --quick")


def list_benchmarks(data: Path, scratch: Path) -> list[tuple[str, str, Path, list[str]]]:
    """Return the name, the converter, the source and the flags of each real benchmark."""
    return [
        ("cuad", "cuad", data / "cuad", []),
        ("contractnli", "contractnli", data / "contractnli", []),
        ("maud", "maud", data / "maud", []),
        ("privacyqa", "privacyqa", data / "privacyqa", []),
        ("acord", "acord", data / "acord", []),
        ("cpr", "cpr", data / "cpr", []),
        ("legalbenchrag", "legalbenchrag", data / "legalbenchrag", ["--mini"]),
        ("statutes-cz", "statutes", data / "statutes" / "cz", []),
        ("legalquad", "legalquad", data / "legalquad", []),
        ("ohr", "table", make_ohr_source(data, scratch), []),
    ]


def make_ohr_source(data: Path, scratch: Path) -> Path:
    """Return a folder with OHR-Bench's questions beside the contracts that they name."""
    folder = scratch / "ohr-source"
    folder.mkdir(parents=True, exist_ok=True)
    questions = data / "ohr" / "questions.jsonl"
    shutil.copy(questions, folder)
    names = {json.loads(line)["document"] for line in questions.read_text(encoding="utf-8").splitlines()}
    for path in (data / "cuad").rglob("*"):
        if path.name in names:
            shutil.copy(path, folder)
    return folder


def store_path(store: Path, group: str, name: str) -> Path:
    return store / group / f"{name.replace(' ', '-')}.json.gz"


def write_facts(path: Path, facts: Facts) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(json.dumps(facts, ensure_ascii=False).encode(), mtime=0))


def read_facts(path: Path) -> Facts:
    facts: Facts = json.loads(gzip.decompress(path.read_bytes()))
    return facts


def compare(before: Facts, after: Facts) -> list[str]:
    """Return one line for each fact that differs; scores that only one side has are only counted."""
    lines, uneven = [], dict[str, int]()
    for key in dict.fromkeys([*before, *after]):
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        if (old is None or new is None) and "| score " in key:
            name = ("- " if new is None else "+ ") + key.rpartition("| score ")[2]
            uneven[name] = uneven.get(name, 0) + 1
            continue
        lines.append(f"{key}\n{show_difference(old, new)}")
    gone = [f"{name} ({count})" for name, count in sorted(uneven.items())]
    return lines + ([f"scores of one side only: {', '.join(gone)}"] if gone else [])


def show_difference(old: str | None, new: str | None) -> str:
    """Return both values, cut shortly before their first difference."""
    if old is None or new is None:
        return f"    - {str(old)[:SHOWN_CHARS]}\n    + {str(new)[:SHOWN_CHARS]}"
    start = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    begin = max(0, start - 60)
    return f"    - …{old[begin : begin + SHOWN_CHARS]}\n    + …{new[begin : begin + SHOWN_CHARS]}"


def main(argv: list[str] | None = None) -> int:
    """Make or compare the record, and print every difference with its question."""
    parser = argparse.ArgumentParser(prog="python tests/record.py", description=__doc__.split("\n")[0])
    parser.add_argument("action", choices=("make", "compare"))
    parser.add_argument("store", type=Path)
    parser.add_argument("--checkout", type=Path, default=ROOT, help="the code to run (default: this one)")
    parser.add_argument("--quick", action="store_true", help="the samples alone")
    parser.add_argument("--only", action="append", help="a group (bundles, runs, verbs, report) or a name; repeat")
    parser.add_argument("--all", action="store_true", help=f"print all differences (default: {SHOWN_DIFFERENCES} each)")
    options = parser.parse_args(argv)
    store, different = options.store.resolve(), 0
    with tempfile.TemporaryDirectory() as scratch:
        recorder = Recorder(options.checkout.resolve(), store, Path(scratch).resolve())
        for group, probes in list_probes(recorder, quick=options.quick).items():
            for name, probe in probes.items():
                needed = name == "demo" and options.only and {"verbs", "report"} & set(options.only)
                if options.only and not needed and not {group, name} & set(options.only):
                    continue
                started = time.monotonic()
                facts = probe()
                path = store_path(store, group, name)
                taken = f"{time.monotonic() - started:.0f} s"
                if options.action == "make":
                    write_facts(path, facts)
                    print(f"{group}/{name}: {len(facts)} facts stored, {taken}", flush=True)
                    continue
                if not path.exists():
                    print(f"{group}/{name}: not in the store, {taken}", flush=True)
                    continue
                lines = compare(read_facts(path), facts)
                different += len(lines)
                print(f"{group}/{name}: {len(facts)} facts, {len(lines)} differ, {taken}", flush=True)
                for line in lines if options.all else lines[:SHOWN_DIFFERENCES]:
                    print(f"  {line}", flush=True)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
