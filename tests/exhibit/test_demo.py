"""The demo where there is no browser: one sample is left out, and the others are printed without one."""

from __future__ import annotations

import json

import pytest

from exhibit import demo


def test_without_a_browser_one_sample_is_left_out_and_named(monkeypatch, capsys):
    monkeypatch.setattr(demo, "find_browser", lambda: None)
    assert demo.chosen_samples(None) == [name for name in demo.SAMPLES if name != "contractnli"]
    assert "the sample of contractnli is left out" in capsys.readouterr().err
    assert demo.chosen_samples("contractnli") == ["contractnli"]
    monkeypatch.setattr(demo, "find_browser", lambda: "chromium")
    assert demo.chosen_samples(None) == list(demo.SAMPLES)


@pytest.mark.parametrize(
    "name",
    [
        name if name == "privacyqa" else pytest.param(name, marks=pytest.mark.slow)
        for name in demo.SAMPLES
        if name != "contractnli"
    ],
)
def test_the_other_samples_are_converted_without_one(name, samples, convert, monkeypatch, tmp_path):
    monkeypatch.setenv("EXHIBIT_BROWSER", str(tmp_path / "no-browser-here"))
    bundle = convert(name, "--source", samples / name)
    printing = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))["printing"]
    assert printing is None or printing["printer"].startswith("ReportLab ")
