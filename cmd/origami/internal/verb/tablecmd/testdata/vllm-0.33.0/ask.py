"""Prints what vLLM would run for products "M,N,K", after its plugins were loaded as vLLM loads them."""

import importlib.metadata
import json
import sys

for _ in range(2):  # a process may load them more than once
    for plugin in importlib.metadata.entry_points(group="vllm.general_plugins"):
        plugin.load()()

from vllm.model_executor.determinism import batch_invariant_configs as configs  # noqa: E402

out = []
for word in sys.argv[1:]:
    m, n, k = (int(size) for size in word.split(","))
    compiled = not configs.runs_without_compiler([(n, k)])
    found = configs._get_matmul_config(m, n, k, "bfloat16", None)
    out.append({"config": found, "compiled": compiled})
print(json.dumps(out))
