"""Variants of known attacks: lines without an end, and archive members with colliding names."""

import json
import unicodedata
import zipfile

import pytest

from exhibit.converters import Tally
from exhibit.converters.core.source import unpack
from exhibit.converters.tables.records import read_records
from exhibit.schemas.errors import SourceError

pytestmark = pytest.mark.slow

GOOD = json.dumps({"question": "When is the rent due?", "document": "a.txt"})
LONG = 3_000_000  # characters of a text without an end mark


def test_read_records_counts_unterminated_json_lines_and_reads_the_other_lines(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(GOOD + '\n{"question": "' + "x" * LONG + "\n" + "[" * LONG + "\n" + GOOD, encoding="ascii")
    tally = Tally()
    assert len(list(read_records(path, path.read_bytes(), tally))) == 2
    assert [len(names) for names in tally.left_out.values()] == [2]


ACCENTED = "Café.txt"


@pytest.mark.parametrize(
    "names",
    [
        ("a/Lease.txt", "a/LEASE.TXT"),
        ("lease.txt", "lease.txt"),
        (unicodedata.normalize("NFC", ACCENTED), unicodedata.normalize("NFD", ACCENTED)),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_unpack_refuses_names_that_collide_on_other_systems(tmp_path, names):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        for name in names:
            file.writestr(name, name)
    with pytest.raises(SourceError, match="the same file name on many systems"):
        unpack(tmp_path / "a.zip", tmp_path / "out")
    assert not (tmp_path / "out").exists(), "all names are checked before unpacking"
