"""GAT: a layer of several attention heads and one of a single head."""

from __future__ import annotations

from grapheraser.training.cuda import attention
from grapheraser.training.cuda.plan import Gradient, Plan
from grapheraser.training.cuda.run import ENTRIES, Run, warps_for


def buffers(plan: Plan) -> dict[str, tuple[str, int]]:
    """What an epoch writes: by name, one row per what, and how wide."""
    hidden, classes, heads = plan.hidden.width, plan.classes.width, plan.heads
    wide = ("z", "out", "h", "slope", "g_hidden", "g_input", "source_part1", "target_part1")
    found = dict.fromkeys(wide, ("rows", hidden))
    for name in ("p", "g", "g_p", "source_part2", "target_part2"):
        found[name] = ("rows", classes)
    for layer, width in ((1, heads), (2, 1)):
        for name in ("source", "target", "by_target"):
            found[f"{name}{layer}"] = ("rows", width)
        for name in ("share", "kept", "by_score"):
            found[f"{name}{layer}"] = ("edges", width)
    return found


def gradients(plan: Plan) -> list[Gradient]:
    """Which buffers the gradients of the parameters are made of."""
    del plan
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
    plan, s, b = run.plan, run.stack, run.arena
    hidden, classes, heads = plan.hidden.width, plan.classes.width, plan.heads
    edges, few = run.edges_per_step, run.edges_per_step // 2
    shape = {"SIZE": plan.size, "UNITS": hidden // heads, "HEADS": heads}
    first = {"SOURCE": plan.offset("att_src1"), "TARGET": plan.offset("att_dst1")}
    second = {"SOURCE": plan.offset("att_src2"), "TARGET": plan.offset("att_dst2")}
    limit = plan.limits.attention
    attention.project_heads[(s.num_rows,)](
        b["z"], b["source1"], b["target1"], run.weights, run.theta, s.x_indptr, s.x_columns,
        s.x_values, s.features, s.row_shard, s.seeds, s.id_keys, run.clock,
        **shape, **first, ENTRIES=ENTRIES, INPUT_LIMIT=plan.limits.features,
        num_warps=warps_for(hidden * ENTRIES),
    )  # fmt: skip
    attention.attend_heads[(s.num_rows,)](
        b["z"], b["source1"], b["target1"], b["out"], b["h"], b["slope"], b["p"], b["source2"],
        b["target2"], b["share1"], b["kept1"], run.theta, s.row_shard, s.seeds, s.id_keys,
        run.clock, s.indptr, s.indices,
        **shape, **second, BIAS=plan.offset("bias1"), WEIGHT=plan.offset("weight2"),
        CLASSES=classes, ACTIVATION=plan.activation, LIMIT=plan.limits.hidden,
        ATTENTION_LIMIT=limit, EDGES=few, num_warps=warps_for(hidden * max(few, classes)),
    )  # fmt: skip
    attention.attend_once[(s.num_rows,)](
        b["p"], b["source2"], b["target2"], b["g"], b["kept2"], b["by_score2"], b["by_target2"],
        run.theta, s.row_shard, s.seeds, s.id_keys, run.clock, s.labels, s.shares, s.indptr,
        s.indices,
        SIZE=plan.size, BIAS=plan.offset("bias2"), CLASSES=classes, NUM_CLASSES=plan.num_classes,
        ATTENTION_LIMIT=limit, EDGES=edges, num_warps=warps_for(classes * edges),
    )  # fmt: skip
    attention.attend_once_gradient[(s.num_rows,)](
        b["g"], b["p"], b["kept2"], b["by_score2"], b["by_target2"], b["g_p"], b["source_part2"],
        b["target_part2"], b["z"], b["out"], b["source1"], b["target1"], b["share1"], b["kept1"],
        b["by_score1"], b["by_target1"], b["g_hidden"], b["slope"], run.theta, s.row_shard,
        s.indptr, s.indices, s.reverse,
        **shape, **second, WEIGHT=plan.offset("weight2"), CLASSES=classes, EDGES=few,
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
