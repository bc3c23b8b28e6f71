"""Plans follow from what was measured."""

from __future__ import annotations

from grapheraser.bench.planning import planning


def test_plans_are_in_proportion_to_what_was_measured() -> None:
    def row(model: str, edges: int, fit: float) -> dict[str, object]:
        times = {name: [9.0, 1.0] for name in ("import", "request_and_save")}
        sizes = {"store_gb": 0.5, "run_gb": 0.5}
        name = {"dataset": f"{edges:.0e}".replace("+0", ""), "model": model, "edges": edges}
        return {**name, **times, **sizes, "fit": [9.0, fit]}

    rows = [
        row(m, e, f * e / 1e6)
        for m, f in (("gcn", 64.0), ("closed-form", 0.5))
        for e in (10**5, 10**6)
    ]
    lines = planning({"rows": rows}).splitlines()[2:]
    first, *_ = lines
    assert [cell.strip() for cell in first.split("|")[1:-1]] == [
        *("1,000,000", "gcn", "1.0 GB", "1.00 s", "64.0 s", "1.49 s", "$0.00", "1.00 s"),
    ]
    last = [cell.strip() for cell in lines[-2].split("|")[1:-1]]
    assert last[:3] == ["10,000,000,000", "gcn", "10,000.0 GB"]
    assert last[-1] == "1.00 s"
