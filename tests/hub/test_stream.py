"""A bundle in a folder of a repository is read where it is, through the Hub's own file system for fsspec."""

from __future__ import annotations

from tests.hub.bundles import write

CODE = """
import os, pathlib
from huggingface_hub import HfApi
from exhibit.storage.bundle import open_bundle
from exhibit.storage.locations import Remote, expand, list_files
from exhibit.storage.bundle import mirror_bundle
from exhibit.storage.validate import validate_at as validate
from exhibit.evidence import read_document

folder = pathlib.Path("charters")
api = HfApi()
api.create_repo("me/many", repo_type="dataset")
api.upload_folder(repo_id="me/many", repo_type="dataset", folder_path=folder, path_in_repo="bundles/charters")
[root] = expand(Remote("hf://datasets/me/many/bundles/*"))
print(root, len(list_files(root)))
bundle = open_bundle(mirror_bundle(root))
for name, file in sorted(bundle.files.items()):
    assert read_document(file).text == (folder / "corpus" / name).read_text(), name
print(sorted(bundle.files), validate(root))
"""


def test_a_folder_of_a_repository_is_read_where_it_is(hub, run_client, tmp_path):
    write(tmp_path / "charters", names=("aurora.txt", "borealis 50%25.txt"))
    token = hub.token("me")
    told = run_client(CODE, token, EXHIBIT_CACHE=str(tmp_path / "cache"))
    assert told.splitlines() == [
        "hf://datasets/me/many/bundles/charters 6",
        "['aurora.txt', 'borealis 50%25.txt'] []",
    ]
