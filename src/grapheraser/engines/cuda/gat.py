"""GAT: a layer of several attention heads and one of a single head."""

from __future__ import annotations

from grapheraser.engines.cuda import attention
from grapheraser.engines.cuda.layout import Gradient
from grapheraser.engines.cuda.run import ENTRIES, Run, warps_for
from grapheraser.engines.shared.layout import TensorLayout


def buffers(layout: TensorLayout) -> dict[str, tuple[str, int]]:
    """Name the buffers that an epoch writes; each has a row per what, and a width."""
    hidden, classes, heads = layout.hidden.width, layout.classes.width, layout.hidden.period
    wide = ("z", "out", "h", "slope", "g_hidden", "source_part1", "target_part1")
    found = dict.fromkeys(wide, ("rows", hidden))
    for name in ("p", "g", "source_part2", "target_part2"):
        found[name] = ("rows", classes)
    found["g_input"] = ("rows", layout.inputs.out.width)
    found["g_p"] = ("rows", layout["weight2"].out.width)
    if layout.spec.skip:
        found |= {"own1": ("rows", hidden), "own2": ("rows", classes)}
    for layer, width in ((1, heads), (2, 1)):
        for name in ("source", "target", "by_target"):
            found[f"{name}{layer}"] = ("rows", width)
        for name in ("share", "kept", "by_score"):
            found[f"{name}{layer}"] = ("edges", width)
    return found


def gradients(layout: TensorLayout) -> list[Gradient]:
    """Name the buffers that the gradients of the parameters are made of."""
    del layout
    return [
        Gradient("weight2", "h", "g_p"),
        Gradient("att_src1", None, "source_part1"),
        Gradient("att_dst1", None, "target_part1"),
        Gradient("bias1", None, "g_hidden"),
        Gradient("att_src2", None, "source_part2"),
        Gradient("att_dst2", None, "target_part2"),
        Gradient("bias2", None, "g"),
    ]


def epoch(run: Run) -> None:
    """Launch one epoch."""
    layout, s, b = run.layout, run.stack, run.arena
    hidden, classes, heads = layout.hidden.width, layout.classes.width, layout.hidden.period
    edges, few = run.edges_per_step, run.edges_per_step // 2
    skip = layout.spec.skip
    own1, own2 = (b["own1"], b["own2"]) if skip else (b["z"], b["p"])  # not read without a skip
    shape = {"SIZE": layout.size, "UNITS": hidden // heads, "HEADS": heads, "IS_PAIR": skip}
    first = {"SOURCE": layout.offset("att_src1"), "TARGET": layout.offset("att_dst1")}
    second = {"SOURCE": layout.offset("att_src2"), "TARGET": layout.offset("att_dst2")}
    limit = layout.limits.attention
    attention.project_heads[(s.num_rows,)](
        b["z"], own1, b["source1"], b["target1"], run.weights, run.theta, s.x_indptr, s.x_columns,
        s.x_values, s.features, s.row_shard, s.seeds, s.id_keys, run.clock,
        **shape, **first, ENTRIES=ENTRIES, INPUT_LIMIT=layout.limits.features,
        num_warps=warps_for(layout.inputs.out.width * ENTRIES),
    )  # fmt: skip
    attention.attend_heads[(s.num_rows,)](
        b["z"], own1, b["source1"], b["target1"], b["out"], b["h"], b["slope"], b["p"], own2,
        b["source2"], b["target2"], b["share1"], b["kept1"], run.theta, s.row_shard, s.seeds,
        s.id_keys, run.clock, s.indptr, s.indices,
        **shape, **second, BIAS=layout.offset("bias1"), WEIGHT=layout.offset("weight2"),
        CLASSES=classes, ACTIVATION=layout.activation, LIMIT=layout.limits.hidden,
        ATTENTION_LIMIT=limit, EDGES=few, num_warps=warps_for(hidden * max(few, classes)),
    )  # fmt: skip
    attention.attend_once[(s.num_rows,)](
        b["p"], own2, b["source2"], b["target2"], b["g"], b["kept2"], b["by_score2"],
        b["by_target2"], run.theta, s.row_shard, s.seeds, s.id_keys, run.clock, s.labels,
        s.loss_shares, s.indptr, s.indices,
        SIZE=layout.size, BIAS=layout.offset("bias2"), CLASSES=classes,
        NUM_CLASSES=layout.num_classes, IS_PAIR=skip, ATTENTION_LIMIT=limit, EDGES=edges,
        num_warps=warps_for(classes * edges),
    )  # fmt: skip
    attention.attend_once_gradient[(s.num_rows,)](
        b["g"], b["p"], b["kept2"], b["by_score2"], b["by_target2"], b["g_p"], b["source_part2"],
        b["target_part2"], b["z"], b["out"], b["source1"], b["target1"], b["share1"], b["kept1"],
        b["by_score1"], b["by_target1"], b["g_hidden"], b["slope"], run.theta, s.row_shard,
        s.indptr, s.indices, s.reverse,
        **shape, **second, WEIGHT=layout.offset("weight2"), CLASSES=classes, EDGES=few,
        num_warps=warps_for(hidden * max(few, classes)),
    )  # fmt: skip
    attention.attend_heads_gradient[(s.num_rows,)](
        b["g_hidden"], b["z"], b["kept1"], b["by_score1"], b["by_target1"], b["g_input"],
        b["source_part1"], b["target_part1"], run.theta, s.row_shard, s.indptr, s.indices,
        s.reverse,
        **shape, **first, EDGES=few, num_warps=warps_for(hidden * few),
    )  # fmt: skip
    with run.beside():
        run.update_parameters()
    run.update_columns(b["g_input"])
