"""The names and rules of the table, see README.md."""

import typing

from vllm.platforms import current_platform

_MatmulMConfig = typing.NamedTuple(
    "_MatmulMConfig", [(name, int) for name in ("block_m", "block_n", "num_warps", "num_stages")]
)
_MatmulShapeConfig = typing.NamedTuple("_MatmulShapeConfig", [("block_k", int), ("m_buckets", tuple)])

_BATCH_INVARIANT_MATMUL_TUNED_CONFIGS = {
    "hopper": {(2048, 2048): _MatmulShapeConfig(128, ((1, _MatmulMConfig(16, 64, 4, 5)),))},
}
_TUNED_MATMUL_CONFIGS_FOR_DEVICE = None
_TUNED_MATMUL_CONFIGS_RESOLVED = False


def _get_tuned_matmul_arch_family(capability):
    return {(12, 0): "sm120", (10, 0): "blackwell", (9, 0): "hopper", (8, 9): "ada"}.get(capability)


def resolve_tuned_matmul_configs():
    global _TUNED_MATMUL_CONFIGS_FOR_DEVICE, _TUNED_MATMUL_CONFIGS_RESOLVED
    if not _TUNED_MATMUL_CONFIGS_RESOLVED:
        family = _get_tuned_matmul_arch_family(current_platform.get_device_capability())
        _TUNED_MATMUL_CONFIGS_FOR_DEVICE = _BATCH_INVARIANT_MATMUL_TUNED_CONFIGS.get(family)
        _TUNED_MATMUL_CONFIGS_RESOLVED = True


def runs_without_compiler(shapes):
    """Stands for VllmConfig's question, which looks into the table of all families."""
    family = _get_tuned_matmul_arch_family(current_platform.get_device_capability())
    return any(shape in _BATCH_INVARIANT_MATMUL_TUNED_CONFIGS.get(family, {}) for shape in shapes)


def _get_matmul_config(m, n, k, dtype, default):
    resolve_tuned_matmul_configs()
    shape = (_TUNED_MATMUL_CONFIGS_FOR_DEVICE or {}).get((n, k))
    if dtype != "bfloat16" or shape is None:
        return default
    fitting = [config for most, config in shape.m_buckets if most >= m] or [shape.m_buckets[-1][1]]
    return {
        "BLOCK_SIZE_M": fitting[0].block_m,
        "BLOCK_SIZE_N": fitting[0].block_n,
        "BLOCK_SIZE_K": shape.block_k,
        "GROUP_SIZE_M": 8,
        "num_warps": fitting[0].num_warps,
        "num_stages": fitting[0].num_stages,
    }
