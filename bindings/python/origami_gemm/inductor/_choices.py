"""The extension of Inductor's choices. It imports much of torch._inductor, so it is loaded when a graph is compiled.

Inductor asks an InductorChoices for the candidates of an operation. Ours puts the model's picks in place of the
candidates of the Triton templates. All else of the handler that was there before stays as it is.
"""

from __future__ import annotations

import dataclasses
import logging
import weakref

from torch._inductor import config
from torch._inductor.choices import InductorChoices
from torch._inductor.ir import TritonTemplateBuffer
from torch._inductor.kernel.bmm import bmm_template
from torch._inductor.kernel.mm import (mm_template, persistent_tma_mm_template,
                                       scaled_mm_device_tma_epilogue_scaling_template)
from torch._inductor.kernel_template_choice import KernelTemplateChoice
from torch._inductor.lookup_table.choices import LookupTableChoices
from torch._inductor.select_algorithm import ExternKernelChoice
from torch._inductor.virtualized import V

import origami_gemm.triton
from origami_gemm.errors import Error
from origami_gemm.inductor import _cublas, _nodes, _pinned, _problem, _state, _table, _versions
from origami_gemm.inductor._problem import NotUnderstood
from origami_gemm.inductor._report import Row

log = logging.getLogger("origami_gemm.inductor")

DictKernelTemplateParams = _versions.template_parameters()
OPERATIONS = ("mm", "addmm", "bmm", "baddbmm", "scaled_mm")
TILED = mm_template, bmm_template
PERSISTENT = persistent_tma_mm_template, scaled_mm_device_tma_epilogue_scaling_template
TAKEN = {"BLOCK_M", "BLOCK_N", "BLOCK_K", "EVEN_K", "GROUP_M", "num_stages", "num_warps"}
SPARE = 8  # picks beyond `top` that stand in for those that the template refuses
UNSURE = 4  # picks for top="auto" where the model does not know its uncertainty
MOST = 16  # picks for top="auto"
# Matrices that a fused epilogue may read and write. With more, a kernel with 128 accumulators per thread (a block of
# 256x128 with 8 warps, say) spills 656 bytes per thread and more (Triton 3.6, sm_90); with these, 224 at most.
EPILOGUE = 3
# Accumulators per thread from which a fused epilogue has few registers left, and few other warps to hide behind.
CROWDED = 128
# Instructions per element of an epilogue from which it gets a kernel of its own behind such a block, as where Inductor
# times and refuses spills: from about here it spills. GELU has 35. On an H200, x W^T and GELU in bf16 took 803.2 µs in
# one kernel and 802.8 in two for 4096x16384x4096, 40.7 and 40.7 for 2048x4096x1024, 14.0 and 13.9 for 512x3072x768.
LONG = 28
# Instructions that functions of Inductor's IR take beyond one, in the kernels that Triton 3.6 makes for sm_90.
INSTRUCTIONS = {"erf": 27, "tanh": 21, "log1p": 28, "expm1": 18, "exp": 8, "sigmoid": 11, "truediv": 8, "sqrt": 14,
                "reciprocal": 6, "pow": 80, "sin": 80, "cos": 80}


def extended(handler, key):
    """A handler like the given one that asks the model. key is for Inductor's caches."""
    if isinstance(handler, Picks):
        kind = type(handler)
    else:
        # Without a uuid of its own, Inductor must not keep what another handler decides.
        mine = {"uuid": _uuid} if type(handler) is InductorChoices or hasattr(handler, "uuid") else {}
        kind = type("Origami" + type(handler).__name__, (Picks, type(handler)), mine)
    new = kind.__new__(kind)
    new.__dict__.update(vars(handler), _origami_key=key, _origami_held=None)
    return new


def _uuid(self):
    """What tells Inductor's caches this handler from others."""
    others = getattr(super(Picks, self), "uuid", None)
    return (self._origami_key, others() if others else None)


class Picks:
    """Mixed into the class of the handler that was there before."""

    def _finalize_template_configs(self, template_choices, kernel_inputs, templates, op_name, kwarg_overrides=None):
        def own():
            return super(Picks, self)._finalize_template_configs(
                template_choices, kernel_inputs, templates, op_name, kwarg_overrides)

        settings = _state.state.settings
        if settings is None or kernel_inputs.device_type != "cuda":
            return own()
        if op_name not in OPERATIONS:
            return _untimed(own())
        held = []
        if op_name == "addmm" and _pinned.in_parts(_versions.PARTS):
            if _pinned.more_follow(kernel_inputs, templates):
                self._origami_held = kernel_inputs.nodes()[1:], own()
                return []
            if _pinned.between(templates):
                return own()
            held = self._released(kernel_inputs)
        asked = settings, kernel_inputs, templates, op_name, kwarg_overrides or {}, held
        try:
            choices, rows = self._generated(*asked) if settings.kernels else self._picks(*asked)
        except Exception as e:  # Inductor's own list is right, whatever is wrong here
            expected = isinstance(e, (NotUnderstood, Error))
            row = Row(op_name, _known(kernel_inputs), reason=str(e) if expected else f"{type(e).__name__}: {e}")
            log.log(logging.WARNING if _state.recorder.add(row) else logging.INFO, "%s", row)
            log.debug("why nothing was picked", exc_info=not expected)
            return _untimed(held + own())
        for row in rows:
            _state.recorder.add(row)
            log.info("%s", row)
        return choices

    def _released(self, kernel_inputs):
        """The choices of cuBLAS for the product that were held until the other templates are asked for."""
        (operands, choices), self._origami_held = self._origami_held or ((), []), None
        return choices if [*map(id, operands)] == [*map(id, kernel_inputs.nodes()[1:])] else []

    def _generated(self, settings, kernel_inputs, templates, op_name, overrides, held):
        """The choices with a generated kernel among them, and the rows of the report. With top=1, the generated kernel or
        cuBLAS; otherwise both, with the picks for Triton's template, to be timed."""
        from origami_gemm.inductor import _kernels

        externs = held or self._externs(kernel_inputs, templates, op_name, overrides)
        if not externs:
            raise NotUnderstood("cuBLAS is not among Inductor's choices")
        own = [choice for choice in externs if choice.template.name == op_name]  # beside it is a function for bias
        choice, row = _kernels.offered((own or externs)[-1], op_name)
        if settings.top == 1:
            return [choice or externs[0]], [row]
        choices, rows = self._picks(settings, kernel_inputs, templates, op_name, overrides, held)
        return ([choice] if choice else []) + choices, [row, *rows]

    def _externs(self, kernel_inputs, templates, op_name, overrides):
        """Inductor's choices of cuBLAS."""
        return [choice for t in templates if isinstance(t, ExternKernelChoice)
                for choice in self.get_ktc(kernel_inputs, t, op_name, overrides.get(t.uid, {}))]

    def can_fuse_vertical(self, scheduler, node1, node2, shared_data_score):
        """Inductor times a fused epilogue if it has several kernels. Into a single one it fuses any."""
        if not super().can_fuse_vertical(scheduler, node1, node2, shared_data_score):
            return False
        try:
            return _state.state.settings is None or _fused(node1, node2)
        except Exception as e:
            log.debug("the size of an epilogue is not known: %s", e)
            return True

    def _picks(self, settings, kernel_inputs, templates, op_name, overrides, held):
        """The choices for an operation, and the rows of the report."""
        if not any(t in TILED for t in templates):
            raise NotUnderstood("Inductor offers no kernel of its Triton template for it")
        if any(t.uid == "decompose_k" for t in templates):
            raise NotUnderstood("Inductor may divide K here, which its Triton template cannot")
        bases = [next(self.get_ktc(kernel_inputs, t, op_name, overrides.get(t.uid, {})), None)
                 for known in (TILED, PERSISTENT) for t in templates if t in known]
        if None in bases:
            raise NotUnderstood("Inductor has no configuration of its Triton template for it")
        for base in bases:
            if missing := TAKEN - base.params.to_kwargs().keys():
                raise NotUnderstood(f"Inductor's template takes no {', '.join(sorted(missing))}")
        base = bases[0]
        if op_name == "scaled_mm" and not _whole_scales(kernel_inputs):
            raise NotUnderstood("its scales are of blocks, which are multiplied inside the loop")
        model = settings.model or origami_gemm.triton.model_of_gpu(kernel_inputs.device().index)
        externs = held or self._externs(kernel_inputs, templates, op_name, overrides)
        if not settings.aten:
            externs = []
        if not externs:
            _nodes.fix_strides(kernel_inputs)
        weighed = settings.aten == "auto" and externs and _library_knows(op_name, kernel_inputs)
        asked = []
        for hint in (None, *config.multi_kernel_hints):
            problem = _nodes.problem(kernel_inputs, base.extra_kwargs.get("ALLOW_TF32", False), hint)
            ranked, wanted = _ranked(model, settings.top, problem, bases)
            cublas = _cublas.seconds(model, problem, ranked[0][0]) if weighed and ranked else None
            asked.append(_Asked(hint, problem, ranked, wanted, cublas))
        dynamic = _nodes.dynamic(kernel_inputs)
        if settings.top == 1 and all(a.cublas_is_faster() for a in asked):
            rows = [Row(op_name, a.problem, (), a.ranked[0][0], 1, dynamic, a.hint, cublas_seconds=a.cublas)
                    for a in asked]
            _pin(kernel_inputs, op_name, externs[0])
            return externs[:1], rows
        choices, rows = list(externs), []
        layout = kernel_inputs.output_layout(flexible=False)
        for a in asked:
            built, picks, runner_up = _built(a, layout)
            choices += built
            if a.hint is None:
                what = _table.chosen(picks[0].seconds, a.cublas, settings.aten if externs else False)
                _pin(kernel_inputs, op_name, {"pick": built[0], "aten": choices[0]}.get(what))
            tma = tuple(choice.template in PERSISTENT for choice in built)
            rows.append(Row(op_name, a.problem, picks, runner_up, len(externs), dynamic, a.hint,
                            cublas_seconds=a.cublas, tma=tma))
        return choices, rows


@dataclasses.dataclass(frozen=True)
class _Asked:
    """A problem and what the models say of it."""

    hint: int | None
    problem: dict
    ranked: list  # picks, best first, each with a choice of the template it is for and what that is built with
    wanted: int  # how many of them
    cublas: float | None  # seconds of cuBLAS, if its model knows

    def cublas_is_faster(self):
        """Clearly faster than the best pick."""
        return bool(self.cublas and self.ranked) and self.cublas <= _cublas.ALONE * self.ranked[0][0].seconds


def _ranked(model, top, problem, bases):
    """The best picks for a problem, of all templates together, and how many of them Inductor gets."""
    inputs = bases[0].inputs
    problem = _problem.with_constants(problem, inputs.dtype().itemsize, _static(inputs))
    if top == "auto":
        regret = model.expected_regret(**problem)
        top = min(regret.worth_measuring, MOST) if regret else UNSURE
    ranked = []
    for base in bases:
        asked = _persistent(model) if base.template in PERSISTENT else model
        picks = origami_gemm.triton.ranking(asked, problem, top + SPARE)
        ranked += [(p, base, blocks) for p in picks
                   if (blocks := _problem.configuration(p, problem["dtype"])) is not None]
    return sorted(ranked, key=lambda r: r[0].seconds), top


_siblings = weakref.WeakKeyDictionary()  # by the model of the picks


def _persistent(model):
    """The model of persistent kernels on the device of another model."""
    if model not in _siblings:
        _siblings[model] = model.sibling("triton_persistent")
    return _siblings[model]


def _built(asked, layout):
    """The choices of the best picks, these picks, and the next one."""
    built, picks = [], []
    for pick, base, blocks in asked.ranked:
        if len(picks) == asked.wanted:
            return built, tuple(picks), pick
        choice = _choice(base, blocks, layout, asked.hint)
        if choice.choice is not None:
            built.append(choice)
            picks.append(pick)
    if not picks:
        raise NotUnderstood("Inductor's template can be built with none of the model's picks")
    return built, tuple(picks), None


def _choice(base, blocks, layout, hint):
    """The choice of a configuration: like one of Inductor's own but for what the pick says."""
    _, _, k = base.inputs.mnk_symbolic()
    even = V.graph.sizevars.statically_known_true(k % blocks["BLOCK_K"] == 0)
    parameters = base.params.to_kwargs() | blocks | {"EVEN_K": even, "hint_override": hint}
    return KernelTemplateChoice(template=base.template, params=DictKernelTemplateParams(parameters),
                                extra_kwargs=base.extra_kwargs, layout=layout, inputs=base.inputs)


def _fused(node1, node2):
    """Whether two nodes of the scheduler may become one kernel, as far as a product with a single pick is concerned."""
    nodes = [*node1.get_nodes(), *node2.get_nodes()]
    product = node1.get_template_node()
    if not isinstance(product, TritonTemplateBuffer) or node2.is_template():
        return True
    choice = product.annotations.get("ktc")  # of one kernel; a buffer with several has none, Inductor times those
    if choice is None or choice.template not in TILED + PERSISTENT:
        return True
    value = choice.params.to_kwargs()
    crowded = value["BLOCK_M"] * value["BLOCK_N"] >= CROWDED * 32 * value["num_warps"]
    if crowded and _instructions(nodes) > LONG:
        return False
    names = {node.get_name() for node in nodes}
    buffers = [buffer for node in nodes for buffer in node.get_outputs()]
    written = {b.get_name() for b in buffers if any(user.get_name() not in names for user in b.users)}
    inner = {b.get_name() for b in buffers}
    size = V.graph.sizevars
    read = {dep.name for node in nodes if not node.is_template() for dep in node.read_writes.reads} - inner
    large = {name for name in read if size.statically_known_equals(V.graph.get_numel(name), product.get_numel())}
    return len(written) + len(large) <= EPILOGUE


def _instructions(nodes):
    """About how many instructions per element an epilogue takes."""
    counts = [node.node.data.inner_fn_opcount() for node in nodes if not node.is_template()]
    return sum(c.num_ops + sum(INSTRUCTIONS.get(op, 0) for op in c.used_ops) for c in counts)


def _pin(kernel_inputs, op_name, choice):
    """Keeps what a product gets where nothing is timed, for _table.write."""
    try:
        key = LookupTableChoices().make_lookup_key(kernel_inputs, op_name, include_device=True)
        if choice and key and (entry := _table.kept(choice)):
            _state.pinned[key] = [entry]
    except Exception as e:  # the graph needs no table
        log.debug("%s has no entry in a table: %s", op_name, e)


def _untimed(choices):
    """Inductor's own choices. If it autotunes only because of us: what it takes without autotuning."""
    if not _state.state.forced or config.max_autotune:
        return choices
    return [c for c in choices if isinstance(c.template, ExternKernelChoice)][:1] or choices


def _known(kernel_inputs):
    """The problem for a row of the report, as far as it is understood."""
    try:
        return _nodes.problem(kernel_inputs, False)
    except Exception:
        return {}


def _library_knows(op_name, kernel_inputs):
    """Whether an operation is one kernel of cuBLAS, like the products that its model was checked on. A row that is added
    to all rows of C is part of it; a whole matrix is copied to C first."""
    if op_name == "addmm":
        return kernel_inputs.nodes()[0].get_stride()[0] == 0
    if op_name == "scaled_mm":
        return set(_nodes.hints([s for node in kernel_inputs.nodes()[2:4] for s in node.get_size()], None)) <= {1}
    return op_name in ("mm", "bmm")


def _whole_scales(kernel_inputs):
    """Whether the scales are of whole tensors, or of rows of A and columns of B."""
    a, b = (_nodes.hints(node.get_size(), None) for node in kernel_inputs.nodes()[2:4])
    return set(a + b) <= {1} or len(a) == len(b) == 2 and a[1] == b[0] == 1


def _static(kernel_inputs):
    """The names of the sizes and leading dimensions that are constants in the kernel."""
    a, b = kernel_inputs.mat1mat2()
    parts = dict(zip("mnk", ([size] for size in kernel_inputs.mnk_symbolic())), lda=a.get_stride(), ldb=b.get_stride())
    return {name for name, given in parts.items() if not any(getattr(x, "free_symbols", None) for x in given)}
