"""Laws of other countries as trees: the parts that each system's file names, in their order, and nothing else."""

from __future__ import annotations

import pytest

from exhibit.evidence import Document
from exhibit.law.language import choose_system, load_systems, read_system, system_of
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


def test_a_czech_law_has_its_parts_in_their_order_and_a_reference_is_no_heading():
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


def test_a_german_law_nests_its_parts_as_it_first_uses_them():
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


OTHERS = {
    "pt": (
        "TÍTULO I\nDos Portos\nCAPÍTULO I\nDAS DISPOSIÇÕES GERAIS\n"
        "Art. 1º Todos os portos são abertos aos navios da lei.\n"
        "§ 1º O navio paga a taxa do porto.\nParágrafo único. A taxa é devida.\nSeção II\nDas Taxas\n"
        "Art. 5º-A As taxas são pagas no porto, nos termos do\nart. 1º desta lei.\nI - pelo navio;\n",
        ["TÍTULO I", "TÍTULO I > CAPÍTULO I", "TÍTULO I > CAPÍTULO I > Art. 1º",
         "TÍTULO I > CAPÍTULO I > Seção II", "TÍTULO I > CAPÍTULO I > Seção II > Art. 5º-A"],
    ),
    "fr": (
        "LIVRE PREMIER\nDES PORTS\nTITRE II\nChapitre Ier\nDispositions générales\nArticle 1er\n"
        "Le port est ouvert aux navires dans les conditions de la loi.\nArticle L. 121-2\n"
        "La taxe est due par le navire.\n",
        ["LIVRE PREMIER", "LIVRE PREMIER > TITRE II", "LIVRE PREMIER > TITRE II > Chapitre Ier",
         "LIVRE PREMIER > TITRE II > Chapitre Ier > Article 1er",
         "LIVRE PREMIER > TITRE II > Chapitre Ier > Article L. 121-2"],
    ),
    "es": (
        "TÍTULO PRELIMINAR\nCAPÍTULO II\nDe los puertos\nArtículo 1. Objeto de la ley.\n"
        "La ley regula los puertos de la costa.\n"
        "Artículo 2. Tasas.\nLas tasas se pagan en el puerto.\nDisposición final primera. Entrada en vigor.\n",
        ["TÍTULO PRELIMINAR", "TÍTULO PRELIMINAR > CAPÍTULO II", "TÍTULO PRELIMINAR > CAPÍTULO II > Artículo 1",
         "TÍTULO PRELIMINAR > CAPÍTULO II > Artículo 2", "Disposición final primera"],
    ),
    "it": (
        "TITOLO I\nDei porti\nCAPO II\nDelle tasse\nArt. 1\nOggetto\nLa legge regola i porti della costa e le tasse.\n"
        "Art. 2-bis\nLa tassa è dovuta dalla nave nel porto.\n",
        ["TITOLO I", "TITOLO I > CAPO II", "TITOLO I > CAPO II > Art. 1", "TITOLO I > CAPO II > Art. 2-bis"],
    ),
    "pl": (
        "DZIAŁ I\nPrzepisy ogólne\nRozdział 1\nPorty\n"
        "Art. 1. Ustawa określa zasady zarządzania portami i przystaniami.\n"
        "Art. 2. W rozumieniu ustawy port jest miejscem postoju statków.\nRozdział 2\nArt. 3a. Opłaty pobiera gmina.\n",
        ["DZIAŁ I", "DZIAŁ I > Rozdział 1", "DZIAŁ I > Rozdział 1 > Art. 1", "DZIAŁ I > Rozdział 1 > Art. 2",
         "DZIAŁ I > Rozdział 2", "DZIAŁ I > Rozdział 2 > Art. 3a"],
    ),
    "sk": (
        "PRVÁ ČASŤ\nZÁKLADNÉ USTANOVENIA\nDRUHÁ HLAVA\n§ 1\nPredmet úpravy\n"
        "Tento zákon upravuje správu prístavov na rieke.\n"
        "§ 2\nPoplatok sa platí v prístave podľa tohto zákona.\n",
        ["PRVÁ ČASŤ", "PRVÁ ČASŤ > DRUHÁ HLAVA", "PRVÁ ČASŤ > DRUHÁ HLAVA > § 1", "PRVÁ ČASŤ > DRUHÁ HLAVA > § 2"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("language", OTHERS)
def test_laws_of_the_other_languages(language):
    text, expected = OTHERS[language]
    assert system_of(text).language == language
    heads = tuple(word for level in choose_system(language).levels if level.rank <= 6 for word in level.words)
    large = [
        path
        for path in paths(text)
        if path.split(" > ")[-1].lower().startswith(heads) or path.endswith(("ČASŤ", "HLAVA"))
    ]
    assert large == expected


def test_a_brazilian_article_has_paragraphs_incisos_letters_and_items():
    text = (
        "TÍTULO I\nDos Portos\nCAPÍTULO I\nDAS DISPOSIÇÕES GERAIS\n"
        "Art. 1º Todos os portos são abertos aos navios da lei.\n§ 1º A taxa do porto é devida:\n"
        "I - pelo navio;\na) de carga;\n1. de grande porte;\n2. de pequeno porte;\nb) de pesca;\n"
        "II - pelo dono do navio.\nArt. 2º As taxas são pagas no porto, nos termos do art. 1º desta lei.\n"
    )
    article = "TÍTULO I > CAPÍTULO I > Art. 1º > § 1º"
    below = [path.removeprefix(f"{article} > ") for path in paths(text) if path.startswith(f"{article} > ")]
    assert below == ["I", "I > a)", "I > a) > 1.", "I > a) > 2.", "I > b)", "II"]


def test_an_english_text_is_read_by_the_english_file():
    assert system_of("Part 3\nSection 5 Time limit\nThe claim is made in the court of the county.\n").language == "en"


def test_the_large_parts_of_an_english_act_stand_in_their_order_and_a_section_keeps_its_title():
    text = (
        "BOOK I\nOF HARBOURS\n\nTITLE II\nOF DUES\n\nPART 3\nPILOTS\n\nCHAPTER 1\nGENERAL\n\n"
        "Section 5 Time limit\n\nA claim is made within a year.\n\nSection 6 Costs\n\nThe harbour pays.\n"
    )
    last = " > ".join(("BOOK I", "TITLE II", "PART 3", "CHAPTER 1", "Section 6"))
    assert paths(text)[-1] == last
    tree = read_structure(Document("act.txt", text))
    assert "Section 5 Time limit" in {section.heading for section in tree.walk()}


def test_a_user_adds_a_system_by_a_file_in_a_folder(tmp_path, monkeypatch):
    (tmp_path / "latin.toml").write_text(
        'name = "Roman law"\nlanguage = "la"\nrefers = "et in ad de cum"\nordinals = "prim=1 secund=2"\n'
        'levels = [{ kind = "book", rank = 2, words = ["liber"] }, '
        '{ kind = "law", rank = 6, words = ["lex"], unit = true }]\n',
        encoding="utf-8",
    )
    monkeypatch.setenv("EXHIBIT_SYSTEMS", str(tmp_path))
    load_systems.cache_clear()
    try:
        text = (
            "LIBER PRIMUS\nDe portubus et navibus\nLex 1\n"
            "Naves in portu manent cum nautis et in mari.\nLex 2\nPortus ad mare est.\n"
        )
        assert paths(text) == ["LIBER PRIMUS", "LIBER PRIMUS > Lex 1", "LIBER PRIMUS > Lex 2"]
    finally:
        load_systems.cache_clear()


def test_a_file_that_is_no_system_says_what_to_look_at(tmp_path):
    (tmp_path / "x.toml").write_text("name = 1", encoding="utf-8")
    with pytest.raises(ToolkitError, match=r"x\.toml: not a legal system.*english\.toml for an example"):
        read_system(tmp_path / "x.toml")


def test_an_ordinal_in_words_counts():
    czech = choose_system("cs")
    assert [czech.parse_ordinal(words) for words in ("první", "DVACÁTÁ PRVNÍ", "šestnáctá", "moře")] == [
        1,
        21,
        16,
        None,
    ]
