"""The command `exhibit`: every subcommand reaches its module, help is fast, exit codes are passed on."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

import exhibit
from exhibit import conversion, prepare, reference
from exhibit.__main__ import main
from exhibit.commands import EXIT_CODES, VERBS, list_spellings, read_stored_help
from exhibit.runtime.command import Invocation, print_note, rename_commands, set_invocation
from tests.rag.bundles import write_bundle

ROOT = Path(__file__).parent.parent.parent
CONVERTERS = "exhibit.converters"


def test_every_verb_names_a_function_that_is_there():
    wanted = "convert evaluate publish pull validate check show export index search ask results doctor".split()
    assert set(wanted) < set(VERBS)
    for verb in VERBS.values():
        assert callable(getattr(import_module(verb.module), verb.attribute)) and verb.help


def test_help_lists_verbs_and_exit_codes(capsys):
    assert main(["--help"]) == 0
    told = capsys.readouterr().out
    assert all(f"  {verb} " in told for verb in VERBS) and all(f"  {code} " in told for code in EXIT_CODES)
    assert main([]) == 2 and "usage: exhibit" in capsys.readouterr().err


def test_help_and_flags_are_known_wherever_they_stand(monkeypatch, capsys):
    for word in ("-h", "help"):
        assert main([word]) == 0 and "verbs:" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["exhibit", "--version"])
    assert main() == 0 and capsys.readouterr().out.startswith("exhibit ")
    given: list[list[str]] = []
    monkeypatch.setattr("exhibit.prepare.main", lambda words: given.append(words) or 5)
    assert main(["--quiet", "prepare", "a", "--verbose", "--", "--quiet", "b"]) == 5
    assert given == [["a", "--", "--quiet", "b"]], "what follows -- is the verb's own"
    assert main(["validate", "-h"]) == 0 and capsys.readouterr().out.startswith("usage: exhibit validate")
    assert main(["qqqq"]) == 2
    assert capsys.readouterr().err.splitlines()[1] == "usage: exhibit VERB …"


def test_help_names_what_other_distributions_bring(monkeypatch, capsys):
    monkeypatch.setattr("exhibit.commands.list_brought_plugins", lambda: {"metrics": ["theirs", "too"]})
    assert main(["evaluate", "--help"]) == 0
    assert capsys.readouterr().out.endswith("\nfrom other distributions:\n  metrics: theirs, too\n")
    assert read_stored_help(["nothing"]) == ""


def test_the_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"exhibit {exhibit.__version__}\n"


def test_a_verb_that_is_not_there_is_guessed(capsys):
    assert main(["evalute"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "error: no verb 'evalute'",
        "did you mean exhibit evaluate?",
        "help: exhibit --help",
    ]


def three_lines(argv, capsys) -> list[str]:
    with pytest.raises(SystemExit) as ended:
        main(argv)
    assert ended.value.code == 2
    return capsys.readouterr().err.splitlines()


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["evaluate", "--presett", "x"], ["unrecognized arguments: --presett", "did you mean --preset?"]),
        (["evaluate", "--splittr", "x"], ["unrecognized arguments: --splittr", "did you mean --splitter?"]),
        (["export", "x", "--to", "bier", "--out", "y"], ["invalid choice: 'bier'", "did you mean beir?"]),
        (["export", "x"], ["required: --out, --to", "usage: exhibit export [flags] DIR --out FOLDER --to {"]),
        (["evaluate", "--limit", "ten"], ["invalid int value: 'ten'", "usage: exhibit evaluate [flags] BUNDLE"]),
    ],
)
def test_a_usage_error_is_three_lines(argv, said, capsys):
    lines = three_lines(argv, capsys)
    assert len(lines) == 3 and said[0] in lines[0] and lines[1].startswith(said[1])
    assert lines[2] == f"help: exhibit {argv[0]} --help"


@pytest.mark.parametrize(
    ("argv", "usage"),
    [
        (["validate", "--help"], "usage: exhibit validate "),
        (["ask", "--help"], "usage: exhibit ask "),
        (["convert", "cuad", "--help"], "usage: exhibit convert cuad "),
        (["evaluate", "--help"], "usage: exhibit evaluate "),
        (["inspect", "--help"], "usage: exhibit inspect "),
        (["text", "--help"], "usage: exhibit text "),
        (["prepare", "--help"], "usage: exhibit prepare "),
    ],
)
def test_a_verbs_help_names_commands_as_they_were_called(argv, usage, capsys):
    assert main(argv) == 0
    told = capsys.readouterr().out
    assert told.startswith(usage)
    assert "python -m" not in told and "evaluate_rag.py" not in told


def test_outside_the_one_command_names_stay_as_they_are():
    assert rename_commands("exhibit ask") == "exhibit ask"
    with set_invocation(Invocation({"exhibit": "exhibit", "exhibit ask": "exhibit ask"})):
        assert rename_commands("exhibit ask; exhibit index") == "exhibit ask; exhibit index"
        assert rename_commands("exhibit inspect index") == "exhibit inspect index"  # which is no verb
    with set_invocation(Invocation(list_spellings())):
        assert rename_commands("run python -m converters.cuad --out x") == "run exhibit convert cuad --out x"
        assert rename_commands("run 'exhibit prepare browser'") == "run 'exhibit prepare browser'"
        assert rename_commands("exhibit prepare model (90 MB)") == "exhibit prepare model (90 MB)"
        assert rename_commands("exhibit inspect index list") == "exhibit inspect index list"


def test_convert_names_the_converters(capsys):
    assert main(["convert", "--help"]) == 0
    assert "cuad" in capsys.readouterr().out
    assert main(["convert", "nothing"]) == 2
    assert "no converter 'nothing'" in capsys.readouterr().err
    assert main(["convert", "cuda", "--out", "x"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "error: no converter 'cuda'",
        "did you mean exhibit convert cuad?",
        "help: exhibit convert --help",
    ]
    assert main(["convert"]) == 2
    told = capsys.readouterr()
    assert told.out == "" and "usage: exhibit convert NAME" in told.err


def test_convert_hands_a_converter_its_own_words(monkeypatch):
    given: list[object] = []
    own = SimpleNamespace(run=lambda words: given.append(words) or 3)
    monkeypatch.setattr(
        conversion, "load_plugin", lambda package, name: {"web": (own, None), "cuad": (own, None)}[name]
    )
    assert main(["convert", "web", "--out", "x"]) == 3 and given == [["--out", "x"]]
    monkeypatch.setattr(sys, "argv", ["exhibit", "web", "--jobs", "2"])
    assert conversion.main() == 3 and given[1:] == [["--jobs", "2"]]
    del own.run
    monkeypatch.setattr(conversion.cli, "main", lambda module, words: given.append((module, words)) or 0)
    assert main(["convert", "cuad", "--out", "y"]) == 0 and given[2:] == [(own, ["--out", "y"])]


def test_prepare_gets_the_parts_that_are_named(monkeypatch, capsys):
    asked: list[str] = []
    for part, code in (("browser", 0), ("model", 1)):
        monkeypatch.setitem(prepare.PARTS, part, lambda part=part, code=code: asked.append(part) or code)
    assert main(["prepare", "browser"]) == 0 and asked == ["browser"]
    assert main(["prepare"]) == 1 and asked == ["browser", "browser", "model"]
    with pytest.raises(SystemExit):
        main(["prepare", "lunch"])
    assert "invalid choice: 'lunch'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("part", "module"),
    [("browser", "exhibit.converters.printing.browser"), ("model", "exhibit.models.embedders.legal")],
)
def test_prepare_calls_what_prepares_a_part(part, module, monkeypatch):
    asked: list[object] = []
    monkeypatch.setattr(import_module(module), "main", lambda *given: asked.append(given) or 0)
    assert main(["prepare", part]) == 0 and asked == [(["--prepare"],) if part == "model" else ()]


USERS = ("schemas.py", "rag/__init__.py", "evaluation/__init__.py", "storage/__init__.py")
"""Modules of a user's own that have the names of our rooms."""


@pytest.mark.parametrize(
    "order",
    [pytest.param("import exhibit, exhibit.rag, {}", marks=pytest.mark.slow), "import {}, exhibit, exhibit.rag"],
)
def test_a_users_modules_keep_their_names_and_nothing_touches_the_path(order, tmp_path):
    for name in USERS:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("OWNER = 'user'\n", encoding="utf-8")
    names = [name.removesuffix(".py").removesuffix("/__init__") for name in USERS]
    code = f"import sys; path = list(sys.path); {order.format(', '.join(names))}; from exhibit import load, locate; "
    code += f"print({', '.join(f'{name}.OWNER' for name in names)}, exhibit.rag.Config.__name__, sys.path == path)"
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.stdout.split() == ["user"] * 4 + ["Config", "True"], done.stderr


def test_exit_codes_and_quiet_come_through(tmp_path, capsys):
    folder = write_bundle(tmp_path / "leases")
    (tmp_path / "file.txt").touch()
    assert main(["validate", "--minimal", str(folder), str(tmp_path / "file.txt")]) == 0
    assert "note: " in capsys.readouterr().err
    assert main(["validate", "--minimal", str(folder), str(tmp_path / "file.txt"), "--quiet"]) == 0
    shown = capsys.readouterr()
    assert shown.err == "" and "sound" in shown.out
    assert main(["show", str(tmp_path / "nowhere"), "1", "--quiet"]) == 1
    assert capsys.readouterr().err.startswith("error: ")


def test_verbose_shows_where_an_error_was_raised(tmp_path, monkeypatch, capsys):
    levels: list[int] = []
    monkeypatch.setattr("logging.basicConfig", lambda *, level, **_: levels.append(level))
    assert main(["show", str(tmp_path / "nowhere"), "1"]) == 1 and levels == []
    capsys.readouterr()
    assert main(["--verbose", "show", str(tmp_path / "nowhere"), "1"]) == 1
    told = capsys.readouterr().err
    assert "Traceback" in told and "error: " in told and levels == [20], "as what it does is logged"


def test_quiet_ends_with_the_command(capsys):
    with set_invocation(Invocation(quiet=True)):
        print_note("unseen")
    print_note("seen")
    assert capsys.readouterr().err == "note: seen\n"


def test_importing_and_helping_load_no_heavy_module():
    code = (
        "import sys, exhibit; early = set(sys.modules); from exhibit.__main__ import main; main(['--help']);"
        "print({'numpy', 'pandas', 'datasets', 'onnxruntime', 'PIL', 'pydantic'} & early,"
        " {'numpy', 'pandas', 'datasets', 'onnxruntime', 'PIL', 'pyarrow'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set() set()"


def test_the_console_script_is_this_command():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, _, attribute = project["scripts"]["exhibit"].partition(":")
    assert getattr(import_module(module), attribute) is main


def test_the_kept_help_is_written_where_it_is_out_of_date(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(reference, "FILE", tmp_path / "help.json")
    monkeypatch.setattr(reference, "generate", lambda: "new\n")
    assert reference.main(["--check"]) == 1 and capsys.readouterr().out == "out of date: help.json\n"
    assert not (tmp_path / "help.json").exists()
    (tmp_path / "help.json").write_text("old\n", encoding="utf-8")
    assert reference.main([]) == 0 and capsys.readouterr().out == "written: help.json\n"
    assert (tmp_path / "help.json").read_text(encoding="utf-8") == "new\n"
    assert reference.main(["--check"]) == reference.main([]) == 0 and capsys.readouterr().out == ""
