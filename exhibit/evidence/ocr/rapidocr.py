"""RapidOCR: its models are inside the package (the extra `ocr`), so nothing is downloaded."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec

import numpy as np
from PIL import Image

from exhibit.evidence.ocr import TextLine
from exhibit.schemas.errors import DocumentError

LANGUAGES = frozenset("cs da de en es et fi fr hr hu it lt lv nb nl no pl pt ro sk sl sv zh".split())
"""The languages of the model's alphabet (no Cyrillic, Greek or Arabic); one model reads them all."""

_LONGEST_SIDE = 4000  # longest side in pixels: RapidOCR's own limit of 2000 would shrink a page of A4 at 200 dpi


def missing(_language: str) -> str:
    is_installed = find_spec("rapidocr") and find_spec("onnxruntime")
    return "" if is_installed else "OCR needs the extra 'ocr': pip install 'exhibit-rag[ocr]'"


@cache
def open(_language: str) -> Callable[[Image.Image], list[TextLine]]:
    """Load the models once, and return a function that reads the lines of an image."""
    engine = import_module("rapidocr").RapidOCR(
        params={"Global.log_level": "critical", "Global.max_side_len": _LONGEST_SIDE}
    )

    def read(picture: Image.Image) -> list[TextLine]:
        # RapidOCR expects the channels blue, green, red
        pixels = np.ascontiguousarray(np.asarray(picture.convert("RGB"))[:, :, ::-1])
        # no direction classifier: on straight pages, it turns one line in a few hundred upside down
        try:
            result = engine(pixels, use_cls=False)
        except MemoryError:
            raise
        except Exception as error:  # OpenCV and ONNX Runtime have their own error classes
            reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
            raise DocumentError(f"RapidOCR could not read a page ({reason})") from error
        if result.boxes is None or result.txts is None:
            return []
        lines = []
        for box, text, confidence in zip(result.boxes, result.txts, result.scores, strict=True):
            left, top, right, bottom = map(float, (*np.min(box, axis=0), *np.max(box, axis=0)))
            lines.append(TextLine(left, top, right, bottom, text, float(confidence)))
        return lines

    return read
