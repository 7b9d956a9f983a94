"""The tables that servers ship, from their wheels: python3 shipped.py vllm-….whl sglang-….whl > shipped.txt.gz"""

import gzip
import json
import re
import sys
import zipfile

KEYS = ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K", "GROUP_SIZE_M", "num_warps", "num_stages")
WHERE = r"(fused_moe|quantization/utils|triton_utils|ops/gemm)/configs/(?:triton_([\d_]+)/)?([EN]=.*)\.json$"
text = ""
for path in sys.argv[1:]:
    wheel, tables = zipfile.ZipFile(path), {}
    for name in wheel.namelist():
        if found := re.search(WHERE, name):
            # SGLang takes the table of the newest version of Triton, unless one is of the version that runs.
            version = [int(part) for part in (found[2] or "0").split("_")]
            if found[3] not in tables or tables[found[3]][0] < version:
                tables[found[3]] = (version, json.loads(wheel.read(name)))
    for name, (_, table) in sorted(tables.items()):
        text += f"{path.rsplit('/')[-1].split('-')[0]} {name}\n"
        for rows in sorted((rows for rows in table if rows.isdecimal() and table[rows]), key=int):
            text += " ".join(str(table[rows].get(key, 0)) for key in KEYS).join((f"{rows} ", "\n"))
sys.stdout.buffer.write(gzip.compress(text.encode(), 9, mtime=0))
