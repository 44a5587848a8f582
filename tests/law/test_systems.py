"""A law becomes a tree that contains only the kinds of parts named in the file of its legal system."""

import pytest

from exhibit.evidence import Document
from exhibit.law.language import choose_system, read_system
from exhibit.law.structure import read_structure
from exhibit.law.structure.tree import Section
from exhibit.schemas.errors import ToolkitError


def paths(text: str) -> list[str]:
    def walk(section: Section, above: tuple[str, ...]) -> list[str]:
        path = (*above, section.label) if section.label else above
        own = [" > ".join(path)] if section.label else []
        return own + [line for child in section.children for line in walk(child, path)]

    return walk(read_structure(Document("law.txt", text)), ())


CZECH = """Zákon o přístavech
ČÁST PRVNÍ
OBECNÁ USTANOVENÍ
HLAVA I
ZÁKLADNÍ USTANOVENÍ
Díl 1
Působnost
§ 1
Předmět úpravy
Tento zákon upravuje
a) správu přístavů,
b) poplatky za stání lodí.
§ 2
(1) Přístavem se rozumí místo podle
§ 5 odst. 2, ve kterém lodě stojí.
(2) Správcem je obec.
Díl 2
Poplatky
Oddíl 1
Pododdíl 1
§ 2a
Poplatek činí 10 Kč.
HLAVA II
§ 3
Za porušení povinnosti podle § 2 se uloží pokuta.
ČÁST DVACÁTÁ PRVNÍ
ÚČINNOST
§ 609
Tento zákon nabývá účinnosti dnem vyhlášení."""


def test_read_structure_nests_the_parts_of_a_czech_law():
    assert paths(CZECH) == [
        "ČÁST PRVNÍ",
        "ČÁST PRVNÍ > HLAVA I",
        "ČÁST PRVNÍ > HLAVA I > Díl 1",
        "ČÁST PRVNÍ > HLAVA I > Díl 1 > § 1",
        "ČÁST PRVNÍ > HLAVA I > Díl 1 > § 1 > a)",
        "ČÁST PRVNÍ > HLAVA I > Díl 1 > § 1 > b)",
        "ČÁST PRVNÍ > HLAVA I > Díl 1 > § 2",
        "ČÁST PRVNÍ > HLAVA I > Díl 1 > § 2 > (1)",
        "ČÁST PRVNÍ > HLAVA I > Díl 1 > § 2 > (2)",
        "ČÁST PRVNÍ > HLAVA I > Díl 2",
        "ČÁST PRVNÍ > HLAVA I > Díl 2 > Oddíl 1",
        "ČÁST PRVNÍ > HLAVA I > Díl 2 > Oddíl 1 > Pododdíl 1",
        "ČÁST PRVNÍ > HLAVA I > Díl 2 > Oddíl 1 > Pododdíl 1 > § 2a",
        "ČÁST PRVNÍ > HLAVA II",
        "ČÁST PRVNÍ > HLAVA II > § 3",
        "ČÁST DVACÁTÁ PRVNÍ",
        "ČÁST DVACÁTÁ PRVNÍ > § 609",
    ]


GERMAN = """Hafengesetz
Buch 1 - Allgemeiner Teil
Abschnitt 1 - Häfen
Titel 1 - Begriffe, die in diesem Gesetz und in der Verordnung über Häfen gelten
§ 1 Begriff des Hafens
(1) Ein Hafen ist ein Ort, an dem Schiffe nach
§ 5 Satz 1 liegen.
§ 2 (weggefallen)
Untertitel 1 - Gebühren
Kapitel 1 - Höhe
§ 3 Gebühr
Die Gebühr wird von der Gemeinde erhoben.
Untertitel 2 - Fristen
Kapitel 1 - Dauer
§ 4 Frist
Die Frist beträgt einen Monat.
Buch 2 - Besonderer Teil
Erster Abschnitt - Werften
§ 5 Werft
Die Werft ist ein Betrieb."""


def test_read_structure_nests_the_parts_of_a_german_law():
    assert paths(GERMAN)[4:] == [
        "Buch 1 > Abschnitt 1 > Titel 1 > § 1 > (1)",
        "Buch 1 > Abschnitt 1 > Titel 1 > § 2",
        "Buch 1 > Abschnitt 1 > Titel 1 > Untertitel 1",
        "Buch 1 > Abschnitt 1 > Titel 1 > Untertitel 1 > Kapitel 1",
        "Buch 1 > Abschnitt 1 > Titel 1 > Untertitel 1 > Kapitel 1 > § 3",
        "Buch 1 > Abschnitt 1 > Titel 1 > Untertitel 2",
        "Buch 1 > Abschnitt 1 > Titel 1 > Untertitel 2 > Kapitel 1",
        "Buch 1 > Abschnitt 1 > Titel 1 > Untertitel 2 > Kapitel 1 > § 4",
        "Buch 2",
        "Buch 2 > Erster Abschnitt",
        "Buch 2 > Erster Abschnitt > § 5",
    ]


def test_read_structure_nests_the_parts_of_a_brazilian_article():
    text = (
        "TÍTULO I\nDos Portos\nCAPÍTULO I\nDAS DISPOSIÇÕES GERAIS\n"
        "Art. 1º Todos os portos são abertos aos navios da lei.\n§ 1º A taxa do porto é devida:\n"
        "I - pelo navio;\na) de carga;\n1. de grande porte;\n2. de pequeno porte;\nb) de pesca;\n"
        "II - pelo dono do navio.\nArt. 2º As taxas são pagas no porto, nos termos do art. 1º desta lei.\n"
    )
    article = "TÍTULO I > CAPÍTULO I > Art. 1º > § 1º"
    below = [path.removeprefix(f"{article} > ") for path in paths(text) if path.startswith(f"{article} > ")]
    assert below == ["I", "I > a)", "I > a) > 1.", "I > a) > 2.", "I > b)", "II"]


def test_read_structure_nests_the_parts_of_an_english_act_with_section_titles():
    text = (
        "BOOK I\nOF HARBOURS\n\nTITLE II\nOF DUES\n\nPART 3\nPILOTS\n\nCHAPTER 1\nGENERAL\n\n"
        "Section 5 Time limit\n\nA claim is made within a year.\n\nSection 6 Costs\n\nThe harbour pays.\n"
    )
    last = " > ".join(("BOOK I", "TITLE II", "PART 3", "CHAPTER 1", "Section 6"))
    assert paths(text)[-1] == last
    tree = read_structure(Document("act.txt", text))
    assert "Section 5 Time limit" in {section.heading for section in tree.walk()}


def test_read_system_refers_to_example_when_file_is_invalid(tmp_path):
    (tmp_path / "x.toml").write_text("name = 1", encoding="utf-8")
    with pytest.raises(ToolkitError, match=r"x\.toml: not a legal system.*english\.toml for an example"):
        read_system(tmp_path / "x.toml")


def test_parse_ordinal_reads_czech_ordinal_words():
    czech = choose_system("cs")
    assert list(map(czech.parse_ordinal, ("první", "DVACÁTÁ PRVNÍ", "šestnáctá", "moře"))) == [1, 21, 16, None]
