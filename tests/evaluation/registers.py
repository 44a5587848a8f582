"""Local imitations of two public registers, legislation.gov.uk and Find Case Law, with a few laws each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs, unquote, urlsplit

from tests.evaluation.loopback import Asked, System, imitating

TITLES = {
    "limitation act 1980": "ukpga/1980/58",
    "human rights act 1998": "ukpga/1998/42",
    "public contracts regulations 2015": "uksi/2015/102",
}
"""What the search by title knows; it takes commas and apostrophes at their word."""
PUNCTUATED = {
    "Legal Aid, Sentencing and Punishment of Offenders Act 2012": "ukpga/2012/10",
    "Justice Act (Northern Ireland) 2015": "nia/2015/9",
}
PROVISIONS = {
    "ukpga/1980/58/section/33",
    "ukpga/1980/58/section/33/1",
    "ukpga/1998/42/section/6",
    "ukpga/1998/42/schedule/1/paragraph/2",
    "uksi/2015/102/regulation/2/1",
    "uksi/2002/618/article/4",
    "ukpga/2012/10/part/1",
    "eur/2016/679/article/6",
    "nia/2015/9/section/8",
}
JUDGMENTS = {"uksc/2021/1", "ewca/civ/2024/123", "ewhc/fam/2023/55", "eat/2023/105"}
FILED_ELSEWHERE = {"[2024] EWHC 789 (Ch)"}


class Registers:
    """Both registers at one address, and what they were asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.agents: set[str] = set()
        self.robots = "User-agent: *\nDisallow: /search\n"
        self.busy = 0
        """How many requests are answered with 429 before the next good one."""
        self.url = ""

    def answer(self, target: str) -> tuple[int, dict[str, str], str]:
        """Return status, headers and body."""
        parts = urlsplit(target)
        path, query = unquote(parts.path).strip("/"), parse_qs(parts.query)
        if path == "robots.txt":
            return 200, {}, self.robots
        if self.busy:
            self.busy -= 1
            return 429, {"Retry-After": "3"}, ""
        if path == "id":
            return self._titled(query["title"][0])
        if path == "all/data.feed":
            return 200, {}, _feed(query["title"][0])
        if path == "atom.xml":
            return 200, {}, _judgments(query["query"][0])
        if path.startswith("id/"):
            known = {*TITLES.values(), *PUNCTUATED.values(), "uksi/2002/618", "eur/2016/679"}
            return (303, {"Location": f"http://www.legislation.gov.uk/{path[3:]}"}, "") if path[3:] in known else NONE
        place = path.removesuffix("/data.xml")
        known = PROVISIONS | JUDGMENTS
        return (200, {"Content-Type": "application/xml"}, "<Legislation/>") if place in known else NONE

    def _titled(self, title: str) -> tuple[int, dict[str, str], str]:
        if title.lower() in TITLES:
            return 301, {"Location": f"http://www.legislation.gov.uk/id/{TITLES[title.lower()]}"}, ""
        if title.lower() == "rent act 1977":
            listed = '<li><a href="/id/uksi/1978/1">The Rent Act 1977 (Forms) Regulations 1978</a></li>'
            listed += '<li><a href="/id/ukpga/1977/42">Rent Act 1977</a></li>'
            return 300, {}, f'<html xmlns="http://www.w3.org/1999/xhtml"><body><ul>{listed}</ul></body></html>'
        return NONE


NONE: tuple[int, dict[str, str], str] = (404, {}, "")


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


@contextmanager
def serve() -> Iterator[Registers]:
    """Run the registers for the length of a test."""
    registers = Registers()

    def reply(_: System, asked: Asked) -> tuple[int, str, dict[str, str]]:
        registers.asked.append(asked.target)
        registers.agents.add(asked.headers.get("User-Agent", ""))
        status, headers, text = registers.answer(asked.target)
        return status, text, headers

    with imitating(reply, []) as system:
        registers.url = system.url
        yield registers
