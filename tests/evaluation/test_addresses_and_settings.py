"""URLs of provisions in the registers, paths and conditions in a target file, headers from the environment."""

from __future__ import annotations

import pytest

import evaluate_rag
from exhibit.evaluation.registers import find_case_path, instrument_path, is_covered, list_provision_paths
from exhibit.evaluation.servers.system import (
    check_path,
    headers_of,
    holds,
    list_systems,
    read_system,
    read_template,
)
from exhibit.law.references.reference import Reference
from exhibit.schemas.errors import ToolkitError


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ("si 2002/618", "uksi/2002/618"),
        ("asp 2003/9", "asp/2003/9"),
        ("eu regulation 2016/679", "eur/2016/679"),
        ("eu regulation 2020/1", "eur/2020/1"),
        ("eu regulation 2021/1", None),
        ("uk gdpr", "eur/2016/679"),
        ("housing act 1985", None),
    ],
)
def test_an_instrument_has_a_path_by_its_number(source, path):
    assert instrument_path(source) == path
    assert is_covered(source) is (path is not None or source == "housing act 1985") and not is_covered("some treaty")


@pytest.mark.parametrize(
    ("source", "path", "paths"),
    [
        ("housing act 1985", ("33", "1", "a"), ["section/33/1/a"]),
        ("tools order 1999", ("4",), ["article/4"]),
        ("tools regulations 1999", ("4", "2"), ["regulation/4/2"]),
        ("tools rules 1999", ("4",), ["rule/4"]),
        ("si 2002/618", ("4",), ["regulation/4", "article/4", "rule/4"]),
        ("asp 2003/9", ("4",), ["section/4"]),
        ("uk gdpr", ("17", "1"), ["article/17"]),
        ("eu directive 1995/46", ("17", "1"), ["article/17"]),
        ("housing act 1985", ("sch 2", "3", "1"), ["schedule/2/paragraph/3/1"]),
        ("housing act 1985", ("sch 2", "part 1"), ["schedule/2/part/1"]),
        ("housing act 1985", ("sch 2", "part 1", "chapter 3"), ["schedule/2/part/1/chapter/3"]),
        ("housing act 1985", ("part 4",), ["part/4"]),
        ("housing act 1985", ("part 4", "3"), ["part/4"]),
        ("housing act 1985", ("sch 2", "recital 1"), []),
        ("uk gdpr", ("recital 47",), []),
        ("housing act 1985", (), []),
    ],
)
def test_a_provision_has_the_paths_that_it_may_have(source, path, paths):
    assert list_provision_paths(Reference("statute", source, path)) == paths


def test_a_judgment_has_a_path_where_its_court_is_covered():
    assert find_case_path(Reference("case", "EWHC (Ch)", ("2024", "1"))) == "ewhc/ch/2024/1"
    assert find_case_path(Reference("case", "UKSC", ("2024", "1"))) == "uksc/2024/1"
    assert find_case_path(Reference("case", "Moon Court", ("2024", "1"))) is None


# ---------------------------------------------------------------- a system's file


@pytest.mark.parametrize(
    ("condition", "values", "told"),
    [
        ("a", {"a": 1}, True),
        ("a", {"a": 0}, False),
        ("!a", {}, True),
        ("a, !b", {"a": 1, "b": 1}, False),
        ("a=x", {"a": "x"}, True),
        ("!a=x", {"a": "y"}, True),
        ("a=1", {"a": 1}, True),
        ("a, b | c", {"c": 1}, True),
        ("a, b | c", {"a": 1}, False),
    ],
)
def test_a_condition_holds_by_the_settings(condition, values, told):
    assert holds(condition, values) is told


def test_a_path_is_one_that_can_be_followed():
    for fine in ("", "a.b[0]", "{setting}", "length(@)", "a" * 2000, "a" + ".a" * 200):
        assert check_path(fine) == fine
    for wrong, why in (
        ("a" * 2001, "of 2001 characters"),
        ("a" + ".a" * 201, "too many nested steps"),
        ("a[", "is not JMESPath"),
    ):
        with pytest.raises(ValueError, match=why):
            check_path(wrong)


def test_a_template_is_json_or_a_file_with_it(tmp_path):
    (tmp_path / "t.json").write_text('{"q": "{question}"}', encoding="utf-8")
    assert read_template(str(tmp_path / "t.json")) == read_template(' {"q": "{question}"}') == {"q": "{question}"}
    assert (
        read_template("{question}") == "{question}" and read_template("") == "" and read_template({"a": 1}) == {"a": 1}
    )
    assert read_template("[1]") == [1]
    for wrong, why in (("{", "not JSON"), (str(tmp_path / "none.json"), "cannot be read")):
        with pytest.raises(ValueError, match=why):
            read_template(wrong)


def test_headers_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("ONE", "1")
    monkeypatch.setenv("ODD", "a\nb")
    monkeypatch.setenv("FAR", "é")
    monkeypatch.delenv("NONE", raising=False)
    assert headers_of({"X": "ONE"}) == {"X": "1"} and headers_of({}) == {}
    with pytest.raises(ToolkitError, match="the environment has no variable NONE"):
        headers_of({"X": "ONE", "Y": "NONE"})
    with pytest.raises(ToolkitError, match="FAR, ODD is not printable ASCII and cannot be sent") as caught:
        headers_of({"X": "ODD", "Y": "FAR"})
    assert "a\nb" not in str(caught.value)


def test_a_file_names_its_own_variables_alone(tmp_path):
    path = tmp_path / "mine.toml"
    for key, allowed in {"EXHIBIT_TARGET_KEY": True, "": True, "OPENAI_API_KEY": False}.items():
        path.write_text(f'\ufeffkey = "{key}"\n', encoding="utf-8")
        if allowed:
            assert read_system(str(path))["key"] == key
        else:
            with pytest.raises(ToolkitError, match="a target file may use only variables named EXHIBIT_TARGET_"):
                read_system(str(path))
    with pytest.raises(ToolkitError, match="the systems are .*nvidia"):
        read_system("none.toml")
    assert {"nvidia", "openai"} <= set(list_systems()) and list_systems() == sorted(list_systems())


def test_a_flag_that_is_misspelt_is_answered_with_the_one_that_is_meant(capsys):
    for words, meant in ((["--weigth-lexical", "1"], "--weight-lexical"), (["--target-ulr=x"], "--target-url")):
        with pytest.raises(SystemExit) as ended:
            evaluate_rag.main(words)
        assert ended.value.code == 2 and f"did you mean {meant}?" in capsys.readouterr().err
