"""The contracts, written once for each module, and the figures of an honest system."""

import pytest

from tests.fooling.contracts import Evaluation, Figures, reply_honestly


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    return Evaluation(tmp_path_factory.mktemp("fooling"))


@pytest.fixture(scope="module")
def honest(evaluation: Evaluation) -> dict[str, Figures]:
    return evaluation.figures(reply_honestly)
