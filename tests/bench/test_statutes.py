"""Topics of statutes: a question is drafted only if the bundle's version of the law has the topic's paragraph."""

from __future__ import annotations

from types import SimpleNamespace

from bench import statutes

LAW = """Bürgerliches Gesetzbuch (BGB)
§ 1
Beginn der Rechtsfähigkeit
Die Rechtsfähigkeit des Menschen beginnt mit der Geburt.
§ 2
Eintritt der Volljährigkeit
Die Volljährigkeit tritt mit der Vollendung des achtzehnten Lebensjahres ein.
"""


def test_a_topic_whose_paragraph_is_not_in_the_last_version_is_left_out_and_told(monkeypatch, tmp_path, capsys):
    (tmp_path / "topics.tsv").write_text("law\tnumber\tquestion\nBGB\t2\tWhen is one of age?\nBGB\t9\tGone?\n", "utf-8")
    entry = SimpleNamespace(title="Bürgerliches Gesetzbuch (BGB)", filename="bgb.pdf", labels={"law": "bgb"})
    monkeypatch.setattr(statutes, "TOPICS", tmp_path / "topics.tsv")
    monkeypatch.setattr(statutes, "open_bundle", lambda root: SimpleNamespace(info=SimpleNamespace(documents=[entry])))
    dataset = SimpleNamespace(root=tmp_path, documents={"bgb.pdf": SimpleNamespace(text=LAW)})
    [case] = statutes.read_topics(dataset)
    assert case.question == "When is one of age?" and case.labels["paragraph"] == "§ 2"
    assert "BGB 9" in capsys.readouterr().err
