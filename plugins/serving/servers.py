"""Compares the newest vLLM and SGLang with what the models and tables were made for, and says what changed.

    python3 servers.py [WHEEL …]            of the package index, or the given ones; 1 if anything changed
    python3 servers.py --record WHEEL …     writes kernels.json

kernels.json has hashes of functions (their text without comments and spaces), names of tables, and keys of the tables
that the servers ship; defaults.json their kernels without a table."""

import ast
import hashlib
import io
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import tokenize
import types
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
RECORD, DEFAULTS = HERE / "kernels.json", HERE / "defaults.json"
KEYS = ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K", "GROUP_SIZE_M", "num_warps", "num_stages")
TRITON = {"num_warps": 4, "num_stages": 3}  # where a configuration does not say them
TABLE = r"(fused_moe|quantization/utils|triton_utils|ops/gemm)/configs/.*[EN]=[^/]*\.json$"

LAYERS, EXECUTOR = "vllm/model_executor/layers/", "vllm/model_executor/"
RUNNER, OPS = "sglang/srt/layers/moe/moe_runner/triton_utils/", "sglang/kernels/ops/"
FUNCTIONS = {
    "vllm": {
        LAYERS + "fused_moe/fused_moe.py": "fused_moe_kernel invoke_fused_moe_triton_kernel get_config_file_name "
        "get_moe_configs get_default_config try_get_optimal_moe_config _prepare_expert_assignment",
        LAYERS + "fused_moe/utils.py": "enable_swap_ab",
        LAYERS + "fused_moe/oracle/unquantized.py": "_get_priority_backends",
        LAYERS + "fused_moe/oracle/fp8.py": "_get_priority_backends",
        LAYERS + "quantization/utils/fp8_utils.py": "_w8a8_triton_block_scaled_mm get_w8a8_block_fp8_configs "
        "w8a8_triton_block_scaled_mm",
        EXECUTOR + "kernels/linear/__init__.py": "_POSSIBLE_FP8_BLOCK_KERNELS",
        EXECUTOR + "determinism/batch_invariant.py": "matmul_kernel_persistent matmul_persistent",
        EXECUTOR + "determinism/batch_invariant_configs.py": "_get_matmul_config",
    },
    "sglang": {
        RUNNER + "fused_moe_triton_config.py": "get_config_file_name get_moe_configs get_default_config "
        "try_get_optimal_moe_config",
        OPS + "moe/fused_moe_triton_kernels.py": "should_enable_swap_ab fused_moe_kernel",
        OPS + "gemm/fp8_kernel.py": "_w8a8_block_fp8_matmul get_w8a8_block_fp8_configs w8a8_block_fp8_matmul_triton",
        "sglang/srt/layers/moe/utils.py": "resolve_shared_experts_config",
        "sglang/srt/layers/quantization/fp8_utils.py": "_dispatch_auto_backend",
        "sglang/srt/models/deepseek_v2.py": "shared_experts_fusion_disable_reason",
        "sglang/srt/models/glm4_moe.py": "shared_experts_fusion_disable_reason",
    },
}
# The functions of names and defaults, and of the kernel for one matrix.
RULES = {"vllm": (LAYERS + "fused_moe/fused_moe.py", LAYERS + "quantization/utils/fp8_utils.py",
                  "w8a8_triton_block_scaled_mm"),
         "sglang": (RUNNER + "fused_moe_triton_config.py", OPS + "gemm/fp8_kernel.py", "w8a8_block_fp8_matmul_triton")}
DEVICES = "NVIDIA H100 80GB HBM3", "NVIDIA H200", "NVIDIA H200 NVL", "NVIDIA RTX PRO 6000 Blackwell Server Edition"
TABLES = ((8, 7168, None, None), (257, 256, "fp8_w8a8", [128, 128]), (128, 704, "fp8_w8a8", None))
TOKENS = 1, 2, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65, 96, 97, 128, 129, 512, 513, 1024, 4096, 65536
WEIGHTS = {"bf16": (None, None), "fp8": ("fp8_w8a8", None), "fp8_block": ("fp8_w8a8", [128, 128])}


class Package:
    """A server's wheel."""

    def __init__(self, path):
        self.zip = zipfile.ZipFile(path)
        self.server, self.version = pathlib.Path(path).name.split("-")[:2]
        self.trees = {}

    def text(self, file):
        try:
            return self.zip.read(file).decode()
        except KeyError:
            return ""

    def node(self, file, name):
        """A function, method or variable of a file, None without one."""
        tree = self.trees.setdefault(file, ast.parse(self.text(file)))
        for node in ast.walk(tree):
            target = getattr(node, "target", None) or (getattr(node, "targets", None) or [None])[0]
            if getattr(node, "name", None) == name or isinstance(node, (ast.Assign, ast.AnnAssign)) and \
                    getattr(target, "id", None) == name:
                return node
        return None

    def hash(self, file, name):
        node = self.node(file, name)
        if node is None:
            return None
        source = ast.get_source_segment(self.text(file), node)
        tokens = tokenize.generate_tokens(io.StringIO(source).readline)
        spaces = tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT
        return hashlib.sha256(" ".join(t.string for t in tokens if t.type not in spaces).encode()).hexdigest()[:16]

    def function(self, file, name, **stubs):
        node = self.node(file, name)
        node.decorator_list, node.returns = [], None
        for argument in node.args.args:
            argument.annotation = None
        scope = dict(stubs)
        exec(compile(ast.Module([node], []), file, "exec"), scope)
        return scope[name]

    def names(self):
        """The names that the server gives to tables of experts."""
        found = {}
        for device, (e, n, dtype, block) in itertools.product(DEVICES, TABLES):
            name = self.function(
                RULES[self.server][0], "get_config_file_name", get_device_name=lambda d=device: d,
                get_device_name_as_file_name=lambda d=device: d.replace(" ", "_"))
            found[f"{device}: {e} {n} {dtype} {block}"] = name(e, n, dtype, block)
        return found

    def defaults(self):
        """The kernels without a table, by what they are for, as defaults.json has them."""
        no, found = types.SimpleNamespace(VLLM_BATCH_INVARIANT=False, enable_deterministic_inference=False), {}
        experts, matrix, name = RULES[self.server]
        for small in False, True:
            get = self.function(
                experts, "get_default_config", envs=no, _is_hip=False, _use_low_smem_fp8_default=lambda s=small: s,
                get_exec=lambda: types.SimpleNamespace(deterministic=no),
                current_platform=types.SimpleNamespace(is_rocm=lambda: False))
            for (weights, (dtype, block)), e, m in itertools.product(WEIGHTS.items(), (8, 128), TOKENS):
                more = (False,) if self.server == "sglang" else ()  # whether the kernel is Marlin
                found["experts", weights, e, m, small] = get(m, e, 768, 2048, 8, dtype, *more, block)
        for node in ast.walk(self.node(matrix, name)):
            if isinstance(node, ast.Dict) and node.keys[:1] and getattr(node.keys[0], "value", 0) == KEYS[0]:
                found["matrix", "fp8_block", 0, 1, False] = eval(
                    compile(ast.Expression(node), matrix, "eval"), {"block_size": [128, 128]})
        return {case: [c.get(key, TRITON.get(key)) for key in KEYS] for case, c in found.items()}

    def keys(self):
        """The keys of the kernels in tables."""
        found = set()
        for name in self.zip.namelist():
            if re.search(TABLE, name):
                for kernel in json.loads(self.zip.read(name)).values():
                    found |= set(kernel) if isinstance(kernel, dict) else set()
        return sorted(found)

    def record(self):
        functions = {file: {name: self.hash(file, name) for name in names.split()}
                     for file, names in FUNCTIONS[self.server].items()}
        return {"server": self.server, "version": self.version, "functions": functions, "names": self.names(),
                "keys": self.keys()}


def default(rows, server, kernel, weights, experts, tokens, small):
    """The kernel of the first row of defaults.json that fits, as serving.Kernel.Default has it."""
    for row in rows:
        if (row["server"] == server and row["kernel"] == kernel and row.get("weights", weights) == weights
                and tokens <= row.get("tokens", tokens) and (not row.get("shared") or small)
                and tokens <= row.get("per_expert", tokens) * max(1, experts)):
            found = list(row["config"])
            if server == "vllm" and experts and weights != "fp8_block" and tokens // experts > 128:
                found[3] = 16
            return found
    return None


def changes(package, old):
    new, found = package.record(), []
    for file, names in old["functions"].items():
        for name, value in names.items():
            now = new["functions"].get(file, {}).get(name)
            if now != value:
                found.append(f"{file}: {name} is {'gone' if now is None else 'another one'}")
    for case, name in old["names"].items():
        if new["names"].get(case) != name:
            found.append(f"the name of a table, {case}: {new['names'].get(case)}, and {name} was recorded")
    for key in sorted(set(new["keys"]) ^ set(old["keys"])):
        found.append(f"tables {'have the key' if key in new['keys'] else 'no longer have the key'} {key}")
    rows = json.loads(DEFAULTS.read_text())["kernels"]
    for case, config in package.defaults().items():
        expected = default(rows, package.server, *case)
        if config != expected:
            kernel, weights, experts, tokens, small = case
            found.append(f"the default of {kernel} in {weights}, {tokens} tokens, {experts} experts"
                         f"{', little shared memory' if small else ''}: {config}, and {expected} was recorded")
    return found


def newest():
    """The newest wheels of the package index."""
    folder = pathlib.Path(tempfile.mkdtemp())
    for server in FUNCTIONS:
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:",
                        "--dest", str(folder), server], check=True)
    return sorted(folder.glob("*.whl"), reverse=True)


def main(arguments):
    record = "--record" in arguments
    packages = [Package(path) for path in [a for a in arguments if a != "--record"] or newest()]
    if record:
        RECORD.write_text(json.dumps({"servers": [p.record() for p in packages]}, indent=1) + "\n")
        return 0
    known, changed = {s["server"]: s for s in json.loads(RECORD.read_text())["servers"]}, False
    for p in packages:
        old = known[p.server]
        try:
            found = changes(p, old)
        except (AttributeError, KeyError, NameError, SyntaxError, TypeError) as error:
            found = [f"its rules cannot be run as those of {old['version']}: {type(error).__name__}: {error}"]
        print(f"{p.server} {p.version}: {'changed since' if found else 'as recorded of'} {old['version']}")
        print("".join(f"  {line}\n" for line in found), end="")
        changed |= bool(found)
    return int(changed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
