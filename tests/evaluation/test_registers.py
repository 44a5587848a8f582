"""References are looked up in public registers slowly, once, and only on request."""

import json
import threading
from types import SimpleNamespace
from urllib.parse import unquote

import pytest

from exhibit.converters.pages import fetch
from exhibit.evaluation.metrics import Options, describe_metric
from exhibit.evaluation.registers import Lookup, Register, find_case_path, find_instrument_path, list_provision_paths
from exhibit.law.references import Reference, find_references
from tests.evaluation.metrics.build import apply, case
from tests.loopback import Reply, Request, free_port, serve
from tests.rag.bundles import row, rows_of, write_files

TITLES = {
    "limitation act 1980": "ukpga/1980/58",
    "human rights act 1998": "ukpga/1998/42",
    "public contracts regulations 2015": "uksi/2015/102",
}
"""The titles that the search finds; it compares commas and apostrophes, too."""
PUNCTUATED = {
    "Legal Aid, Sentencing and Punishment of Offenders Act 2012": "ukpga/2012/10",
    "Justice Act (Northern Ireland) 2015": "nia/2015/9",
}
PROVISIONS = {
    "ukpga/1980/58/section/33", "ukpga/1980/58/section/33/1", "ukpga/1998/42/section/6", "nia/2015/9/section/8",
    "ukpga/1998/42/schedule/1/paragraph/2", "uksi/2015/102/regulation/2/1", "uksi/2002/618/article/4",
    "ukpga/2012/10/part/1", "eur/2016/679/article/6",
}  # fmt: skip
JUDGMENTS = {"uksc/2021/1", "ewca/civ/2024/123", "ewhc/fam/2023/55", "eat/2023/105"}
FILED_ELSEWHERE = {"[2024] EWHC 789 (Ch)"}


NONE = Reply(status=404)


class RegisterServer:
    """An imitation of the two registers at one address, with the requests that it received."""

    url, robots = "", "User-agent: *\nDisallow: /search\n"
    busy = 0
    """The number of requests that are answered with 429 before the next normal reply."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    @property
    def asked(self) -> list[str]:
        return [request.target for request in self.requests]

    def receive(self, request: Request) -> Reply:
        self.requests.append(request)
        return self.answer(request)

    def answer(self, request: Request) -> Reply:
        path, title = unquote(request.path).strip("/"), request.query.get("title", "")
        if path == "robots.txt":
            return Reply(self.robots)
        if self.busy:
            self.busy -= 1
            return Reply(status=429, headers={"Retry-After": "3"})
        if path == "id":
            return self._titled(title)
        if path == "all/data.feed":
            return Reply(_feed(title))
        if path == "atom.xml":
            return Reply(_judgments(request.query["query"]))
        if path.startswith("id/"):
            known = {*TITLES.values(), *PUNCTUATED.values(), "uksi/2002/618", "eur/2016/679"}
            moved = Reply(status=303, headers={"Location": f"http://www.legislation.gov.uk/{path[3:]}"})
            return moved if path[3:] in known else NONE
        known = PROVISIONS | JUDGMENTS
        kind = {"Content-Type": "application/xml"}
        return Reply("<Legislation/>", headers=kind) if path.removesuffix("/data.xml") in known else NONE

    def _titled(self, title: str) -> Reply:
        if title.lower() in TITLES:
            return Reply(b"", 301, {"Location": f"http://www.legislation.gov.uk/id/{TITLES[title.lower()]}"})
        if title.lower() == "rent act 1977":
            listed = '<li><a href="/id/uksi/1978/1">The Rent Act 1977 (Forms) Regulations 1978</a></li>'
            listed += '<li><a href="/id/ukpga/1977/42">Rent Act 1977</a></li>'
            return Reply(f'<html xmlns="http://www.w3.org/1999/xhtml"><body><ul>{listed}</ul></body></html>', 300)
        return NONE


def _feed(words: str) -> str:
    wanted = set(words.lower().replace("(", "").replace(")", "").split())
    entries = "".join(
        f"<entry><id>http://www.legislation.gov.uk/id/{path}</id><title>{title}</title></entry>"
        for title, path in PUNCTUATED.items()
        if wanted <= set(title.lower().replace(",", "").replace("(", "").replace(")", "").split())
    )
    return f'<feed xmlns="http://www.w3.org/2005/Atom"><id>search</id><title>Search</title>{entries}</feed>'


def _judgments(citation: str) -> str:
    entry = f'<entry><title>A v B</title><tna:identifier type="ukncn">{citation}</tna:identifier></entry>'
    found = entry if citation in FILED_ELSEWHERE else ""
    spaces = 'xmlns="http://www.w3.org/2005/Atom" xmlns:tna="https://caselaw.nationalarchives.gov.uk"'
    return f"<feed {spaces}>{found}</feed>"


@pytest.fixture
def registers():
    running = RegisterServer()
    with serve(running.receive) as running.url:
        yield running


class FakeClock:
    """A clock that advances only when the code waits."""

    def __init__(self) -> None:
        self.now, self.pauses = 1000.0, []

    def monotonic(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.pauses += [seconds] if seconds else []
        self.now += seconds

    def is_set(self) -> bool:
        return False


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    clock = FakeClock()
    monkeypatch.setattr(fetch, "time", clock)
    monkeypatch.setattr(fetch, "threading", SimpleNamespace(**{**vars(threading), "Event": lambda: clock}))
    return clock


def register(tmp_path, registers) -> Register:
    return Register(tmp_path / "kept", registers.url)


def find_reference(text: str) -> Reference:
    [reference] = find_references(text)
    return reference


@pytest.mark.parametrize(("text", "outcome"), [
    ("section 33 of the Limitation Act 1980", "found"), ("section 33(1) of the Limitation Act 1980", "found"),
    ("section 99 of the Limitation Act 1980", "absent"), ("the Limitation Act 1980", "found"),
    ("section 33 of the Limitations Statute Act 1980", "absent"),
    ("paragraph 2 of Schedule 1 to the Human Rights Act 1998", "found"),
    ("paragraph 9 of Schedule 1 to the Human Rights Act 1998", "absent"),
    ("regulation 2(1) of the Public Contracts Regulations 2015", "found"),
    ("Part 1 of the Legal Aid, Sentencing and Punishment of Offenders Act 2012", "found"),
    ("section 8 of the Justice Act (Northern Ireland) 2015", "found"), ("the Rent Act 1977", "found"),
    ("art 4 of SI 2002/618", "found"), ("art 5 of SI 2002/618", "absent"), ("SI 2002/9999", "absent"),
    ("Article 6(1)(f) of Regulation (EU) 2016/679", "found"), ("Article 6 of the UK GDPR", "found"),
    ("Article 600 of Regulation (EU) 2016/679", "absent"), ("Article 5 of Regulation (EU) 2022/2065", "uncovered"),
    ("Article 101 TFEU", "uncovered"), ("[2021] UKSC 1", "found"), ("[2024] EWCA Civ 123", "found"),
    ("[2023] EWHC 55 (Fam)", "found"), ("[2023] EAT 105", "found"), ("[2024] EWHC 789 (Ch)", "found"),
    ("[2024] EWCA Civ 99999", "absent"), ("[2009] EWCA Civ 99999", "uncovered"), ("[2019] CSIH 12", "uncovered"),
    ("[2020] NICA 3", "uncovered"), ("UKEAT/0123/20/LA", "uncovered"), ("CPR 3.4", "uncovered"),
    ("PD 53B para 2.1", "uncovered"),
])  # fmt: skip
def test_register_check_returns_found_absent_or_uncovered(tmp_path, registers, text, outcome):
    checked = register(tmp_path, registers).check(find_reference(text))
    assert checked.outcome == outcome, checked
    assert checked.url.startswith(registers.url) or outcome == "uncovered"
    assert outcome != "uncovered" or checked.detail


def test_register_paths_are_built_from_reference():
    assert find_case_path(find_reference("[2024] EWHC 789 (Ch)")) == "ewhc/ch/2024/789"
    assert find_case_path(find_reference("[2020] EWFC 12 (B)")) == "ewfc/b/2020/12"
    assert find_case_path(find_reference("[2020] UKUT 12 (AAC)")) == "ukut/aac/2020/12"
    assert find_instrument_path("eu directive 1995/46") == "eudr/1995/46"
    assert find_instrument_path("nisr 2006/261") == "nisr/2006/261"
    assert find_instrument_path("limitation act 1980") == ""
    for text, paths in {
        "Part 1 of Schedule 2 to the Housing Act 1985": ["schedule/2/part/1"],
        "Chapter 2 of Part 1 of the Housing Act 1985": ["part/1/chapter/2"],
        "paragraph 6 of Schedule 18 to the Housing Act 1985": ["schedule/18/paragraph/6"],
        "recital 47 of Regulation (EU) 2016/679": [],
        "Annex III to Directive 2014/24/EU": ["annex/III"],
    }.items():
        assert list_provision_paths(find_reference(text)) == paths


def test_register_lookups_are_cached_within_and_between_runs(tmp_path, registers):
    found = find_references("section 33 of the Limitation Act 1980, and [2021] UKSC 1; [2021] UKSC 1")
    once = register(tmp_path, registers)
    first = {reference: once.check(reference) for reference in found}
    asked = list(registers.asked)
    assert len(first) == 2 and len(asked) == len(set(asked))
    twice = register(tmp_path, registers)
    assert {reference: twice.check(reference) for reference in found} == first == once.checked
    assert registers.asked == asked, "the second run must use the cache"


def test_register_looks_up_absent_reference_again_in_next_run(tmp_path, registers, monkeypatch):
    reference = find_reference("[2024] EWCA Civ 124")
    assert register(tmp_path, registers).check(reference).outcome == "absent"
    monkeypatch.setitem(globals(), "JUDGMENTS", JUDGMENTS | {"ewca/civ/2024/124"})
    assert register(tmp_path, registers).check(reference).outcome == "found"


def test_register_pauses_between_requests_and_sends_user_agent(tmp_path, registers, clock):
    register(tmp_path, registers).check(find_reference("section 33 of the Limitation Act 1980"))
    # robots.txt, the title, the identifier, the section
    assert len(registers.asked) == 4 and clock.pauses == [0.5] * 3
    assert all(request.headers["User-Agent"].startswith("exhibit-rag/") for request in registers.requests)


def test_register_that_redirects_without_end_is_unreachable(tmp_path, registers, monkeypatch):
    moved = Reply(status=307, headers={"Location": "/uksc/2021/1/data.xml"})
    monkeypatch.setattr(registers, "answer", lambda request: NONE if "robots" in request.path else moved)
    checked = register(tmp_path, registers).check(find_reference("[2021] UKSC 1"))
    assert checked.outcome == "unreachable" and "redirects endlessly" in checked.detail
    assert registers.asked.count("/uksc/2021/1/data.xml") == 4


def test_register_obeys_robots_txt_disallow_and_crawl_delay(tmp_path, registers, clock):
    registers.robots = "User-agent: exhibit-rag\nDisallow: /uksc\nCrawl-delay: 7\n"
    checked = register(tmp_path, registers).check(find_reference("[2021] UKSC 1"))
    assert checked.outcome == "uncovered" and "robots.txt" in checked.detail
    assert [path for path in registers.asked if "uksc" in path] == []
    register(tmp_path, registers).check(find_reference("[2024] EWCA Civ 99999"))
    assert clock.pauses[-1] == 7


def test_lookup_waits_for_the_time_that_a_busy_register_requests(tmp_path, registers, clock):
    registers.busy = 1
    assert register(tmp_path, registers).check(find_reference("[2021] UKSC 1")).outcome == "found"
    assert clock.pauses[-1] == pytest.approx(3, abs=0.1)


def test_register_rejects_reply_over_size_limit(tmp_path, registers, monkeypatch):
    monkeypatch.setattr("exhibit.evaluation.registers._LARGEST", 100)
    monkeypatch.setitem(globals(), "_judgments", lambda citation: "<feed>" + "x" * 1000 + "</feed>")
    checked = register(tmp_path, registers).check(find_reference("[2024] EWHC 789 (Ch)"))
    assert checked.outcome == "unreachable" and "100 bytes" in checked.detail
    assert register(tmp_path, registers).check(find_reference("[2021] UKSC 1")).outcome == "found"


OUTCOMES = {
    "section 33 of the Limitation Act 1980": "found",
    "section 99 of the Limitation Act 1980": "absent",
    "[2021] UKSC 1": "found",
    "CPR 3.4": "uncovered",
    "[2024] EWCA Civ 7": "unreachable",
}


class StubRegisters:
    """Registers that know five references."""

    def check(self, reference: Reference) -> Lookup:
        return Lookup({find_reference(text): outcome for text, outcome in OUTCOMES.items()}[reference])


@pytest.mark.parametrize(("answer", "share"), [
    ("section 33 of the Limitation Act 1980", 1.0), ("section 99 of the Limitation Act 1980", 0.0),
    ("section 33 of the Limitation Act 1980, and [2021] UKSC 1", 1.0),
    ("sections 33 and 99 of the Limitation Act 1980, and [2021] UKSC 1", 2 / 3),
    ("sections 33 and 99 of the Limitation Act 1980, again section 33 of the Limitation Act 1980", 1 / 2),
    ("section 99 of the Limitation Act 1980 under CPR 3.4", 0.0), ("CPR 3.4", None), ("[2024] EWCA Civ 7", None),
    ("No law at all.", None), (None, None),
])  # fmt: skip
def test_references_official_is_the_share_of_checkable_references_that_the_registers_contain(answer, share):
    options = Options(officials=StubRegisters())
    assert apply("references_official", [case(answer=answer)], options) == {"references_official": [share]}


def test_references_official_is_none_without_registers():
    assert apply("references_official", [case(answer="[2021] UKSC 1")]) == {"references_official": [None]}
    assert "registers" in describe_metric("references_official").needs
    assert describe_metric("references_official").group == "Citations"


def bundle(tmp_path):
    questions = ("May time be extended?", "By whom?")
    rows = [row(n, question, "yes", {"filename": "a.txt"}) for n, question in enumerate(questions)]
    answers = ["Yes: sections 33 and 99 of the Limitation Act 1980.", "By the court: [2021] UKSC 1, CPR 3.4."]
    replies = [{"id": n, "answer": answer} for n, answer in enumerate(answers)]
    (tmp_path / "replies.jsonl").write_text("".join(json.dumps(r) + "\n" for r in replies), encoding="utf-8")
    return write_files(tmp_path / "limits", {"a.txt": "Time may be extended."}, rows)


def flags(tmp_path, url: str) -> list[object]:
    return [bundle(tmp_path), "--target", f"predictions:{tmp_path / 'replies.jsonl'}", "--registers-url", url]


def test_check_references_writes_scores_and_lookup_results(run_command, tmp_path, registers):
    assert run_command(*flags(tmp_path, registers.url), "--check-references") == 0
    place = tmp_path / "results" / "r" / "limits"
    rows = rows_of(place / "eval_results.jsonl")
    assert [row["scores"]["references_official"] for row in rows] == [0.5, 1.0]
    assert json.loads((place / "summary.json").read_text(encoding="utf-8"))["references_official"]["mean"] == 0.75
    lines = rows_of(place / "references.jsonl")
    assert [(line["id"], line["reference"], line["outcome"]) for line in lines] == [
        (0, "limitation act 1980 33", "found"),
        (0, "limitation act 1980 99", "absent"),
        (1, "[2021] UKSC 1", "found"),
        (1, "CPR 3.4", "uncovered"),
    ]


def test_evaluate_contacts_no_register_by_default(run_command, tmp_path, registers, capsys):
    mirror = flags(tmp_path, registers.url)
    assert run_command(*mirror) == 1
    assert "registers_url has no effect without check_references" in capsys.readouterr().err
    assert run_command(*mirror[:-2]) == 0 and registers.asked == []
    summary = json.loads((tmp_path / "results" / "r" / "summary.json").read_text(encoding="utf-8"))
    assert "references_official" not in summary


def test_check_references_offline_prints_one_note_about_unchecked_references(run_command, tmp_path, capsys):
    assert run_command(*flags(tmp_path, f"http://127.0.0.1:{free_port()}"), "--check-references") == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if "not checked" in line]
    assert len(notes) == 1 and "3 of 4 references not checked" in notes[0] and "127.0.0.1" in notes[0]
