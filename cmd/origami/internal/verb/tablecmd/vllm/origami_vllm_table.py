"""Gives vLLM's batch-invariant matmul the tables of kernels that lie beside this file.

`origami table invariant --output` wrote it. vLLM finds `register` by the entry point in the folder beside this file and
calls it in each of its processes before it looks for a table. Checked with the source of vLLM 0.33.0. In any other
state of vLLM the table is left out and a warning says so: products are then right, and slower.
"""

import json
import logging
import pathlib

log = logging.getLogger("vllm.origami_table")
FORMAT = "origami-vllm-invariant-1"
FAMILY = "origami"  # the key of our table among vLLM's, which are by family of architectures


def register():
    try:
        from vllm.model_executor.determinism import batch_invariant_configs as configs
        from vllm.platforms import current_platform

        if current_platform.is_cuda():
            put(configs, current_platform.get_device_name(), current_platform.get_device_capability())
    except Exception as error:  # whatever it is, a server without the table is better than none
        log.warning("The table of origami is not used, as it does not fit this vLLM: %r", error)


def put(configs, device, capability):
    """Puts the tables for a device in front of those that vLLM has for its architecture."""
    shapes, others = {}, []
    for path in sorted(pathlib.Path(__file__).parent.glob("*.json")):
        table = json.loads(path.read_text(encoding="utf-8"))
        if table.get("format") != FORMAT:
            continue
        if table["device_name"] != device:
            others.append(table["device_name"])
            continue
        for layer in table["layers"]:
            shapes[layer["n"], layer["k"]] = configs._MatmulShapeConfig(
                block_k=layer["block_k"],
                m_buckets=tuple(
                    (
                        kernel["m"],
                        configs._MatmulMConfig(
                            block_m=kernel["block_m"],
                            block_n=kernel["block_n"],
                            num_warps=kernel["num_warps"],
                            num_stages=kernel["num_stages"],
                        ),
                    )
                    for kernel in layer["kernels"]
                ),
            )
    if not shapes:
        log.warning("No table of origami is for %s; there are some for: %s", device, ", ".join(others) or "no device")
        return
    family = configs._get_tuned_matmul_arch_family
    tables = configs._BATCH_INVARIANT_MATMUL_TUNED_CONFIGS
    tables[FAMILY] = {**tables.get(family(capability), {}), **shapes}
    configs._get_tuned_matmul_arch_family = lambda capability: FAMILY
    configs._TUNED_MATMUL_CONFIGS_RESOLVED = False  # vLLM looks for its table once, and may have done so
    log.info("Batch-invariant matmul: %d shapes of origami's tables for %s", len(shapes), device)
