"""Every figure of README's table follows from data that is kept beside it."""

from __future__ import annotations

import csv
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grapheraser_lab.bench import cost, tuned
from grapheraser_lab.timing import median_of

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
GNNS = ("gcn", "sage", "gat", "gin")
CAP = 1.05


def stored(name: str) -> Any:
    return json.loads((ROOT / "lab" / "results" / f"{name}.json").read_text())


def rows(protocol: str, name: str) -> list[dict[str, str]]:
    with (ROOT / "docs" / "results" / protocol / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


def ms(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms"


def ms_with_error(row: dict[str, Any], name: str) -> str:
    """The median, and the spread of medians of resampled seconds, where they were kept."""
    if "runs" not in row:
        return ms(row[name])
    median, error = median_of(row["runs"][name])
    return f"{1000 * median:.1f} ± {1000 * error:.1f} ms"


def share(error: float) -> str:
    return f"± {100 * error:.0f} %"


def times(ratio: float) -> str:
    return f"{ratio:.1f}x" if ratio < 10 else f"{ratio:,.0f}x"


def geometric(values: list[float]) -> float:
    return math.exp(float(np.mean(np.log(values))))


def relative_f1(label: str) -> str:
    """Mean, standard error over the graphs, and least ratio to the best of four from scratch."""
    f1: dict[tuple[str, str, str], list[float]] = {}
    for cell in stored("utility")["cells"]:
        for name, value in cell["f1"].items():
            f1.setdefault((cell["dataset"], cell["model"], name), []).append(value)
    means = {key: float(np.mean(some)) for key, some in f1.items()}
    graphs = {d for d, _, _ in means}
    top = {g: max(v for (d, _, n), v in means.items() if (d, n) == (g, "scratch")) for g in graphs}
    kept = {(d, m): min(CAP, v / top[d]) for (d, m, n), v in means.items() if n == label}
    each = [np.mean([v for key, v in kept.items() if key[0] == g]) for g in graphs]
    error = np.std(each, ddof=1) / len(each) ** 0.5
    return f"{np.mean(list(kept.values())):.3f} ± {error:.3f} ({min(kept.values()):.3f})"


def closed_form() -> str:
    kept = list(tuned.ratios(stored("tuned")).values())
    error = np.std(kept, ddof=1) / len(kept) ** 0.5
    return f"{np.mean(kept):.3f} ± {error:.3f} ({min(kept):.3f})"


def gcn(dataset: str) -> dict[str, Any]:
    """A request and a prediction, and from scratch: our own engine, sparse PyTorch, PyG."""
    rows = cost.beside(stored("cost"), stored("scratch"))["rows"]
    (found,) = (r for r in rows if (r["dataset"], r["model"]) == (dataset, "gcn"))
    return dict(found)


def scratch(rival: str) -> str:
    physics, cora = (times(gcn(name)[rival] / gcn(name)["request"]) for name in ("physics", "cora"))
    return f"{physics} (Cora: {cora})"


def large() -> str:
    scale = {r["dataset"]: r for r in stored("scale")["rows"] if r["model"] == "gcn"}
    big, small = (ms(scale[name]["request"][1]) for name in ("1e8", "1e5"))
    return f"{big} (of 10^4 nodes: {small})"


def papers_requests() -> str:
    """Like for like, by the requests of protocol literal."""
    spent: dict[tuple[str, str], list[float]] = {}
    for row in rows("literal", "node-efficiency"):
        if row["dataset"] == "physics":
            key = row["model"], row["partition"]
            spent.setdefault(key, []).append(float(row["seconds"]))
    mean = {key: float(np.mean(some)) for key, some in spent.items()}
    far = {key: float(np.std(some, ddof=1)) / len(some) ** 0.5 for key, some in spent.items()}
    keys = [key for key in mean if key[1] != "scratch"]
    own = geometric([mean[m, "scratch"] / mean[m, p] for m, p in keys])
    # Of a geometric mean: relative errors add up in squares; scratch is in three ratios each.
    squares = sum((far[key] / mean[key]) ** 2 for key in keys)
    whole = {(m, "scratch") for m, _ in keys}
    squares += sum((len(keys) / len(whole) * far[key] / mean[key]) ** 2 for key in whole)
    return f"{times(own)} {share(squares**0.5 / len(keys))}"


FIGURES = {
    "pooled": lambda: relative_f1("pooled"),
    "tuned": closed_form,
    "physics": lambda: ms_with_error(gcn("physics"), "request"),
    "our engine": lambda: scratch("ours"),
    "sparse PyTorch": lambda: scratch("sparse"),
    "scale": large,
    "prediction": lambda: ms_with_error(gcn("physics"), "predict_one"),
    "the paper's configuration": papers_requests,
}


@pytest.mark.parametrize("name", FIGURES)
def test_a_row_of_the_readme_follows_from_the_data(name: str) -> None:
    told = FIGURES[name]()
    assert told in README, f"README should say: {told}"


def test_the_table_has_no_row_without_a_test() -> None:
    table = README.split("## In numbers")[1].split("## ")[0]
    lines = re.findall(r"^\| .*\|$", table, flags=re.M)
    body = [line for line in lines if line.strip("| -")]
    told = [FIGURES[name]() for name in FIGURES]
    assert len(body) == len(told) <= 8
    assert all(text in line for text, line in zip(told, body, strict=True)), body


def test_what_the_readme_says_of_f1_in_words_follows_from_the_data() -> None:
    text = " ".join(README.split())
    assert "within 1 % of the best of four GNNs" in text
    assert float(relative_f1("pooled").split("(")[1].rstrip(")")) >= 0.99
    kept = list(tuned.ratios(stored("tuned")).values())
    below = f"{100 * (1 - np.mean(kept)):.1f} % below GNNs that were tuned as well, in the mean"
    assert f"{below}, and {100 * (1 - min(kept)):.0f} % at the most" in text


@pytest.mark.parametrize("page", ["README.md", "docs/results/README.md"])
def test_what_is_said_of_the_evaluation_follows_from_its_data(page: str) -> None:
    gaps: dict[tuple[str, str, str, str], list[float]] = {}
    published: dict[tuple[str, str, str, str], float] = {}
    for row in rows("paper", "readings"):
        key = row["reading"], row["dataset"], row["model"], row["column"]
        gaps.setdefault(key, []).append(float(row["f1"]))
        published[key] = float(row["published"])

    def far(reading: str) -> str:
        some = [abs(np.mean(f1) - published[k]) for k, f1 in gaps.items() if k[0] == reading]
        assert len(some) == 200
        return f"{np.mean(some):.3f}"

    text = " ".join((ROOT / page).read_text().split())
    assert far("closest, five data sets") in text
    assert f"word by word {far('literal, five data sets')}" in text
    report = (ROOT / "docs" / "results" / "paper" / "report.md").read_text()
    line = next(x for x in report.split("\n") if "comparable model utility with" in x)
    assert "true in 10 of 20 cases, false in 3 (" in line
    assert "true in 10 of 20 cases, false in 3)" in text
