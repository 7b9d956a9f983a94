"""The tables that servers ship, from their wheels: python3 shipped.py vllm-….whl sglang-….whl > shipped.json.gz"""

import gzip
import json
import re
import sys
import zipfile

KEYS = ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K", "GROUP_SIZE_M", "num_warps", "num_stages")
WHERE = r"(fused_moe|quantization/utils|triton_utils|ops/gemm)/configs/(?:triton_([\d_]+)/)?([EN]=.*)\.json$"
out = {}
for path in sys.argv[1:]:
    wheel, tables = zipfile.ZipFile(path), {}
    for name in wheel.namelist():
        if found := re.search(WHERE, name):
            # SGLang takes the table of the newest version of Triton, unless one is of the version that runs.
            version = [int(part) for part in (found[2] or "0").split("_")]
            if found[3] not in tables or tables[found[3]][0] < version:
                tables[found[3]] = (version, json.loads(wheel.read(name)))
    for name, (_, table) in sorted(tables.items()):
        rows = {rows: [line.get(key, 0) for key in KEYS] for rows, line in table.items() if rows.isdecimal() and line}
        out[f"{path.rsplit('/')[-1].split('-')[0]} {name}.json"] = rows
sys.stdout.buffer.write(gzip.compress(json.dumps(out, separators=(",", ":")).encode(), 9, mtime=0))
