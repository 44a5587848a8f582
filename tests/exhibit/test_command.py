"""The command `exhibit`: every subcommand reaches its module, help is quick, exit codes are passed on."""

import os
import resource
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

import exhibit
from exhibit import conversion, doctor
from exhibit.__main__ import EXIT_CODES, VERBS, main
from exhibit.runtime.command import print_note
from tests.rag.bundles import write_bundle

ROOT = Path(__file__).parent.parent.parent
MAX_HELP_SECONDS = 0.2


def test_exhibit_has_17_verbs_with_existing_functions():
    assert len(VERBS) == 17
    for verb in VERBS.values():
        for target in (f"{verb.module}:main", *verb.modes.values()):
            module, _, function = target.partition(":")
            assert callable(getattr(import_module(module), function)), target


def test_help_lists_verbs_and_exit_codes_and_version_flag_prints_the_version(capsys, monkeypatch):
    for word in ("--help", "-h", "help"):
        assert main([word]) == 0
        shown = capsys.readouterr().out
        assert all(f"  {verb} " in shown for verb in VERBS) and all(f"  {code} " in shown for code in EXIT_CODES)
    assert main([]) == 2 and "usage: exhibit" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["exhibit", "--version"])
    assert main() == 0 and capsys.readouterr().out == f"exhibit {exhibit.__version__}\n"


def test_global_flags_are_removed_before_verb_receives_arguments(monkeypatch):
    received: list[list[str]] = []
    monkeypatch.setattr(doctor, "main", lambda words: received.append(words) or 5)
    assert main(["--quiet", "doctor", "a", "--verbose", "--", "--quiet", "b"]) == 5
    assert received == [["a", "--", "--quiet", "b"]], "arguments after -- belong to the verb"


@pytest.mark.parametrize(
    ("argv", "target", "arguments"),
    [
        (["index", "--inspect", "i", "list"], "exhibit.rag.inspect", ["i", "list"]),
        (["validate", "b", "--documents", "--json"], "exhibit.evidence.check", ["b", "--json"]),
        (["evaluate", "--settings", "chunk"], "exhibit.evaluation.settings", ["chunk"]),
        (["export", "b", "--to", "beir"], "exhibit.hub.exports", ["b", "--to", "beir"]),
        (["search", "--", "--inspect"], "exhibit.rag.__main__", ["search", "--", "--inspect"]),
    ],
)
def test_mode_flag_of_verb_calls_function_of_that_mode(argv, target, arguments, monkeypatch):
    received: list[list[str]] = []
    monkeypatch.setattr(f"{target}.main", lambda words: received.append(words) or 0)
    assert main(argv) == 0 and received == [arguments]


@pytest.mark.parametrize(
    ("argv", "lines"),
    [
        (["evalute"], ["error: no verb 'evalute'", "did you mean exhibit evaluate?", "help: exhibit --help"]),
        (["qqqq"], ["error: no verb 'qqqq'", "usage: exhibit VERB …", "help: exhibit --help"]),
        (
            ["convert", "cuda"],
            ["error: no converter 'cuda'", "did you mean exhibit convert cuad?", "help: exhibit convert --help"],
        ),
    ],
)
def test_unknown_verb_or_converter_gets_suggestion(argv, lines, capsys):
    assert main(argv) == 2
    assert capsys.readouterr().err.splitlines() == lines


@pytest.mark.parametrize(
    ("argv", "error", "nearest"),
    [
        (["evaluate", "--presett", "x"], "unrecognized arguments: --presett", "did you mean --preset?"),
        (["evaluate", "--splittr", "x"], "unrecognized arguments: --splittr", "did you mean --splitter?"),
        (["export", "x", "--to", "bier", "--out", "y"], "invalid choice: 'bier'", "did you mean beir?"),
        (["export", "x"], "required: --to, --out", "usage: exhibit export [flags] DIR --to {"),
        (["evaluate", "--limit", "ten"], "invalid int value: 'ten'", "usage: exhibit evaluate [flags] BUNDLE"),
    ],
)
def test_usage_error_prints_three_lines_with_hint(argv, error, nearest, capsys):
    with pytest.raises(SystemExit) as ended:
        main(argv)
    lines = capsys.readouterr().err.splitlines()
    assert ended.value.code == 2 and len(lines) == 3
    assert error in lines[0] and lines[1].startswith(nearest) and lines[2] == f"help: exhibit {argv[0]} --help"


@pytest.mark.parametrize(
    "words", ["validate", "ask", "convert cuad", "evaluate", "index --inspect", "export", "doctor"]
)
def test_help_of_verb_shows_exhibit_command_names(words, capsys):
    try:
        main([*words.split(), "--help"])
    except SystemExit as ended:
        assert ended.code == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: exhibit {words} ")
    assert "python -m" not in shown and "evaluate_rag.py" not in shown


def test_convert_without_a_name_lists_the_converters(capsys):
    assert main(["convert", "--help"]) == 0 and "cuad" in capsys.readouterr().out
    assert main(["convert"]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and "usage: exhibit convert NAME" in shown.err


def test_convert_passes_arguments_to_the_converter(monkeypatch):
    received: list[object] = []
    own = SimpleNamespace(run=lambda words: received.append(words) or 3)
    monkeypatch.setattr(conversion, "load_plugin", lambda package, name: (own, None))
    assert main(["convert", "web", "--out", "x"]) == 3 and received == [["--out", "x"]]
    del own.run
    monkeypatch.setattr(conversion.command, "main", lambda module, words: received.append((module, words)) or 0)
    assert main(["convert", "cuad", "--out", "y"]) == 0 and received[1:] == [(own, ["--out", "y"])]


def test_user_modules_with_names_of_exhibit_subpackages_stay_importable(tmp_path):
    names = ("schemas", "rag", "evaluation", "storage")
    for name in names:
        (tmp_path / f"{name}.py").write_text("OWNER = 'user'\n", encoding="utf-8")
    code = f"import sys; path = list(sys.path); import {', '.join(names)}, exhibit, exhibit.rag; "
    code += f"print({', '.join(f'{name}.OWNER' for name in names)}, exhibit.rag.Config.__name__, sys.path == path)"
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.stdout.split() == ["user"] * 4 + ["Config", "True"], done.stderr


def test_quiet_flag_hides_notes_but_not_results_and_errors(tmp_path, capsys):
    folder = write_bundle(tmp_path / "leases")
    (tmp_path / "file.txt").touch()
    assert main(["validate", "--minimal", str(folder), str(tmp_path / "file.txt")]) == 0
    assert "note: " in capsys.readouterr().err
    assert main(["validate", "--minimal", str(folder), str(tmp_path / "file.txt"), "--quiet"]) == 0
    shown = capsys.readouterr()
    assert shown.err == "" and "sound" in shown.out
    assert main(["show", str(tmp_path / "nowhere"), "1", "--quiet"]) == 1
    assert capsys.readouterr().err.startswith("error: ")
    print_note("seen")
    assert capsys.readouterr().err == "note: seen\n", "--quiet applies to a single command"


def test_verbose_flag_prints_the_traceback_of_an_error(tmp_path, monkeypatch, capsys):
    levels: list[int] = []
    monkeypatch.setattr("logging.basicConfig", lambda *, level, **_: levels.append(level))
    assert main(["show", str(tmp_path / "nowhere"), "1"]) == 1 and levels == []
    assert "Traceback" not in capsys.readouterr().err
    assert main(["--verbose", "show", str(tmp_path / "nowhere"), "1"]) == 1
    shown = capsys.readouterr().err
    assert "Traceback" in shown and "error: " in shown and levels == [20]


def test_help_is_fast_and_loads_no_heavy_module():
    code = (
        "import sys, exhibit; early = set(sys.modules); from exhibit.__main__ import main; main(['--help']);"
        "print({'numpy', 'pandas', 'datasets', 'onnxruntime', 'PIL', 'pydantic'} & early,"
        " {'numpy', 'pandas', 'datasets', 'onnxruntime', 'PIL', 'pyarrow'} & set(sys.modules))"
    )
    costs = []
    for _ in range(5):  # take the shortest time, because other programs only add time
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        costs.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert done.stdout.splitlines()[-1] == "set() set()"
    assert min(costs) < MAX_HELP_SECONDS
