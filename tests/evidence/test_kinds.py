"""The visible text of office files and mails is read, broken files are reported, and no reader hangs."""

from pathlib import Path

import pytest

from exhibit.evidence import locate, read_document
from exhibit.evidence.read import list_folder, read_attachments, read_printable
from exhibit.schemas.errors import DocumentError
from tests.evidence import files

W, docx, paragraph = files.W, files.docx, files.paragraph


@pytest.mark.parametrize("ending", sorted(files.GOOD))
def test_read_document_reads_every_kind_of_file(write, ending):
    sentence = "The tenant shall keep the premises in repair."
    document = read_document(write(f"good{ending}", files.GOOD[ending](sentence)))
    assert locate(sentence, document), document.text


@pytest.mark.parametrize("ending", sorted(files.BROKEN))
def test_read_document_names_a_broken_file_of_every_kind(write, ending):
    path = write(f"broken{ending}", files.BROKEN[ending])
    with pytest.raises(DocumentError, match=r"^.*broken\.\w+: "):
        read_document(path)
    for data in (b"", b"\0" * 100, files.BROKEN[ending][:5]):
        path.write_bytes(data)
        try:
            assert read_document(path).filename == path.name
        except DocumentError as error:
            assert str(path) in str(error)


@pytest.mark.parametrize("ending", [".docx", ".xlsx"])
def test_read_document_refuses_an_office_file_that_is_a_zip_bomb(write, ending):
    bomb = files.pack({"word/document.xml": b" " * (8 << 20), "content.xml": b"x"})
    with pytest.raises(DocumentError, match="times its size; do not trust"):
        read_document(write(f"bomb{ending}", bomb))


def test_read_document_refuses_too_deeply_nested_tags(write):
    for name, data in (
        ("deep.eml", files.eml("x", html="<div>" * 30000 + "words")),
        ("deep.md", b"<div>" * 30000 + b"words"),
    ):
        with pytest.raises(DocumentError, match="nested too deeply"):
            read_document(write(name, data))
    tables = "<w:tbl><w:tr><w:tc>" * 3000 + "</w:tc></w:tr></w:tbl>" * 3000
    with pytest.raises(DocumentError, match="damaged, or not a valid Word document"):
        read_document(write("deep.docx", docx(tables)))


def test_read_document_accepts_and_counts_tracked_changes(write):
    changed = (
        "<w:p><w:r><w:t xml:space='preserve'>The rent is </w:t></w:r>"
        "<w:del w:author='A'><w:r><w:delText>400</w:delText></w:r></w:del>"
        "<w:ins w:author='A'><w:r><w:t>450</w:t></w:r></w:ins><w:r><w:t xml:space='preserve'> pounds</w:t></w:r></w:p>"
        "<w:p><w:pPr><w:rPr><w:del w:author='A'/></w:rPr></w:pPr>"
        "<w:r><w:t xml:space='preserve'>It is due </w:t></w:r></w:p>"
        "<w:p><w:r><w:t>monthly.</w:t></w:r></w:p>"
        "<w:moveFrom w:author='A'><w:r><w:t>gone</w:t></w:r></w:moveFrom>"
    )
    document = read_document(write("lease.docx", docx(changed)))
    assert document.text == "The rent is 450 pounds\nIt is due monthly."
    assert document.notes == ("tracked changes accepted: 3",)


def test_read_document_omits_and_counts_a_deleted_table_row(write):
    cell = "<w:tc><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc>"
    rows = f"<w:tr>{cell.format('kept')}</w:tr><w:tr><w:trPr><w:del w:author='A'/></w:trPr>{cell.format('gone')}</w:tr>"
    document = read_document(write("table.docx", docx(f"<w:tbl>{rows}</w:tbl>")))
    assert document.text.strip() == "kept"
    assert document.notes == ("tracked changes accepted: 1",)


def test_read_document_reports_an_encrypted_word_document(write):
    data = bytearray(docx(paragraph("words")))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.find(mark)
        while at >= 0:
            data[at + offset] |= 1
            at = data.find(mark, at + 1)
    with pytest.raises(DocumentError, match="locked.docx: .*is encrypted"):
        read_document(write("locked.docx", bytes(data)))


def test_read_document_reads_tables_footnotes_headers_and_comments_of_a_word_document(write):
    body = (
        "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>Fee</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>400</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
        '<w:p><w:r><w:t>Paid yearly</w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r></w:p>'
    )
    remark = f'<w:comment w:id="0" w:author="Ines">{paragraph("Too low?")}</w:comment>'
    parts = {
        "footnotes": f'<w:footnotes {W}><w:footnote w:id="2">{paragraph("In advance.")}</w:footnote></w:footnotes>',
        "header1": f"<w:hdr {W}>{paragraph('Draft of 2 March')}</w:hdr>",
        "footer1": f"<w:ftr {W}>{paragraph('Confidential')}</w:ftr>",
        "comments": f"<w:comments {W}>{remark}</w:comments>",
    }
    document = read_document(write("parts.docx", docx(body, **parts)))
    text = document.text
    assert text.startswith("Draft of 2 March") and text.endswith("Confidential")
    assert "Fee\t400" in text.replace("\n", "\t").replace("\t\t", "\t")
    assert "In advance." in text and "Ines: Too low?" in text
    assert document.notes == ("comments printed at the end of the document: 1",)


@pytest.mark.parametrize("ending", ["eml", "msg"])
def test_mail_attachments_are_listed_as_separate_files(tmp_path, ending):
    inner = files.docx(paragraph("The tenant pays."))
    attached = {"lease.docx": inner, "notes/../x.txt": b"Signed on Monday." + b" " * 5000}
    data = (
        files.eml("Please see clause 9.", attachments=attached)
        if ending == "eml"
        else files.msg(subject="Notice under clause 9", body="Please see clause 9.", attachments=attached)
    )
    path = tmp_path / f"notice.{ending}"
    path.write_bytes(data)
    text = read_document(path).text
    assert "From\tInes Corvo" in text and "Notice under clause 9" in text and "Please see clause 9." in text
    assert "lease.docx" in text.split("Attachments")[1]
    assert [name for name, _ in read_attachments(path)] == ["lease.docx", "notes/../x.txt"]
    listed = list_folder(tmp_path)
    name, attachments = path.name, ("lease.docx", "notes_.._x.txt")
    assert [file.name for file in listed] == [name, *(f"{name}/{attachment}" for attachment in attachments)]
    assert [file.path.name for file in listed[1:]] == [f"{name} - {attachment}" for attachment in attachments]
    assert read_document(listed[1].path).text == "The tenant pays."


def test_mail_attached_to_a_mail_is_read_with_visible_html_text(tmp_path):
    inner = files.eml("x", html="<style>p{}</style><p>The rent is <b>450</b> pounds.</p><script>x</script>")
    (tmp_path / "outer.eml").write_bytes(files.eml("Forwarded.", attachments={"inner.eml": inner}))
    outer, forwarded = list_folder(tmp_path)
    assert "Forwarded." in read_document(outer.path).text
    assert "The rent is 450 pounds." in read_document(forwarded.path).text


def test_locate_finds_a_quote_across_markdown_emphasis(write):
    path = write(
        "terms.md", b"The fee is **450** pounds, _payable_ in [advance](x).\n\n| a | b |\n|---|---|\n| Fee | 450 |\n"
    )
    document = read_document(path)
    [match, *_] = locate("The fee is 450 pounds, payable in advance.", document)
    assert match.how == "exact"
    assert "Fee \t450" in document.text


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stub of the LibreOffice command."""
    monkeypatch.setattr(
        "exhibit.evidence.readers.libreoffice._COMMANDS", (str(files.write_stub_office(tmp_path / "bin")),)
    )


@pytest.mark.parametrize(
    ("ending", "head"), [("doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), ("wpd", b"\xffWPC\x10\0\0\0")]
)
def test_read_document_converts_old_office_files_with_libreoffice(write, office, ending, head):
    path = write(f"old.{ending}", head + docx(paragraph("The tenant pays.")))
    document = read_document(path)
    assert document.text == "The tenant pays." and document.notes == ("converted by LibreOffice",)
    with pytest.raises(DocumentError, match="conversion cannot be read: not a valid Word document: it is empty"):
        read_document(write(f"cut.{ending}", head))
    with pytest.raises(DocumentError, match=f"not a valid .{ending} file"):
        read_document(write(f"other.{ending}", b"something else"))


def test_read_document_converts_slides_with_libreoffice(write, office):
    document = read_document(write("slides.pptx", b"PK\x03\x04ppt/<p>The tenant pays.</p>"))
    assert document.text == "The tenant pays." and document.notes == ("converted by LibreOffice",)


def test_read_document_explains_how_to_install_libreoffice_when_missing(write, monkeypatch):
    monkeypatch.setattr("exhibit.evidence.readers.libreoffice._COMMANDS", ("no-such-office",))
    with pytest.raises(DocumentError, match="needs LibreOffice, which is not installed: apt-get"):
        read_document(write("old.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"))


def test_read_printable_prints_paragraph_number_from_style_only_once(write):
    level = '<w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/><w:pStyle w:val="Clause"/></w:lvl>'
    lists = f'<w:abstractNum w:abstractNumId="1">{level}</w:abstractNum>'
    lists += '<w:num w:numId="5"><w:abstractNumId w:val="1"/></w:num>'
    style = '<w:pPr><w:numPr><w:numId w:val="5"/></w:numPr></w:pPr>'
    styles = f'<w:styles {W}><w:style w:type="paragraph" w:styleId="Clause">{style}</w:style></w:styles>'
    body = paragraph("Rent.", '<w:pStyle w:val="Clause"/>')
    path = write("a.docx", docx(body, numbering=f"<w:numbering {W}>{lists}</w:numbering>", styles=styles))
    page = read_printable(path)
    assert page is not None and page.html == "<p>1. Rent.</p>", "the number is printed once"
