"""The products and models that measure.py compiles."""

import torch
import torch.nn.functional as F

DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp8": torch.float8_e4m3fn}

FUNCTIONS = {
    "linear": lambda x, w: F.linear(x, w),
    "mm": lambda a, b: a @ b,
    "linear-gelu": lambda x, w, bias: F.gelu(F.linear(x, w, bias)),
    "bmm": lambda a, b: torch.bmm(a, b),
    "baddbmm": lambda c, a, b: torch.baddbmm(c, a, b),
    "scaled": lambda a, w, scale_a, scale_w: torch._scaled_mm(
        a, w.t(), scale_a, scale_w, out_dtype=torch.bfloat16, use_fast_accum=True),
}

KINDS = 8  # products at the beginning of the list that have every operation, type and kind of shape

# Operation, type, (batch,) m, n, k. A run that is cut off has some of every kind. Those that take longest are last.
PRODUCTS = [
    ("linear", "bf16", 4096, 14336, 4096),
    ("linear", "bf16", 16, 4096, 4096),
    ("mm", "fp16", 4096, 4096, 4096),
    ("scaled", "fp8", 4096, 4096, 4096),
    ("linear-gelu", "bf16", 4096, 16384, 4096),
    ("linear", "bf16", 1000, 3000, 777),
    ("bmm", "fp16", 32, 512, 512, 128),
    ("baddbmm", "bf16", 16, 1024, 256, 64),
    ("linear", "bf16", 1, 4096, 4096),
    ("linear", "bf16", 1024, 4096, 14336),
    ("mm", "fp16", 1024, 1024, 1024),
    ("linear", "bf16", 128, 28672, 4096),
    ("linear", "bf16", 512, 14336, 4096),
    ("mm", "fp16", 8192, 8192, 8192),
    ("linear", "bf16", 64, 6144, 4096),
    ("mm", "fp16", 4095, 4097, 4100),
    ("linear", "bf16", 2048, 6144, 4096),
    ("mm", "fp16", 2048, 2048, 2048),
    ("linear", "bf16", 16, 14336, 4096),
    ("linear", "bf16", 256, 4096, 4096),
    ("linear", "bf16", 32, 4096, 14336),
    ("linear", "bf16", 8192, 8192, 8192),
    ("mm", "fp16", 16, 4096, 4096),
    ("linear", "bf16", 2047, 2049, 2051),
    ("mm", "fp16", 8192, 1024, 1024),
    ("linear", "bf16", 4096, 4096, 4096),
    ("linear", "bf16", 300, 50257, 1024),
    ("mm", "fp16", 4096, 128, 8192),
    ("linear-gelu", "bf16", 16, 16384, 4096),
    ("linear-gelu", "bf16", 512, 3072, 768),
    ("linear-gelu", "bf16", 2048, 4096, 1024),
    # Inductor's list has 106 kernels for each of these, and takes 30 to 40 s.
    ("scaled", "fp8", 16, 14336, 4096),
    ("scaled", "fp8", 1024, 4096, 14336),
    ("scaled", "fp8", 8192, 8192, 8192),
    ("scaled", "fp8", 128, 6144, 4096),
    ("scaled", "fp8", 2048, 14336, 4096),
]

SMALL = [("linear", "bf16", 64, 96, 128), ("mm", "fp16", 33, 65, 127), ("linear-gelu", "bf16", 16, 64, 32),
         ("bmm", "fp16", 2, 32, 32, 16), ("baddbmm", "bf16", 2, 16, 16, 16)]

MODELS = [
    {"name": "llama-block", "hidden": 2048, "inner": 5632, "heads": 16, "layers": 2, "batch": 4, "tokens": 1024},
    {"name": "transformers-llama", "hidden": 2048, "inner": 5632, "heads": 16, "layers": 4, "batch": 4, "tokens": 1024,
     "vocabulary": 32000},
]


def products(small):
    for i, (operation, dtype, *sizes) in enumerate(SMALL if small else PRODUCTS):
        # One product of fp8 has all contenders: top=4 takes 10 s in that type.
        without = ["top4", "top4-triton", "top4-aten"] if dtype == "fp8" and i >= KINDS else []
        yield {"name": f"{operation} {dtype} {'x'.join(map(str, sizes))}", "operation": operation, "dtype": dtype,
               "sizes": sizes, "without": without}


def operands(spec, device):
    """The arguments of a product's function, and its result in fp32."""
    *batch, m, n, k = spec["sizes"]
    dtype = DTYPES[spec["dtype"]]
    generator = torch.Generator(device).manual_seed(m + 3 * n + 7 * k)

    def normal(*sizes):
        return torch.randn(*sizes, device=device, generator=generator).to(dtype)

    match spec["operation"]:
        case "linear":
            arguments = normal(m, k), normal(n, k)
        case "mm":
            arguments = normal(m, k), normal(k, n)
        case "linear-gelu":
            # The scale of a trained layer: GELU sees values around one.
            weights = torch.randn(n, k, device=device, generator=generator) / k**0.5
            arguments = normal(m, k), weights.to(dtype), normal(n)
        case "bmm":
            arguments = normal(*batch, m, k), normal(*batch, k, n)
        case "baddbmm":
            arguments = normal(*batch, m, n), normal(*batch, m, k), normal(*batch, k, n)
        case "scaled":
            scale = torch.tensor(0.5, device=device)
            a, w = normal(m, k), normal(n, k)
            return (a, w, scale, scale), a.float() @ w.float().t() * 0.25
    return arguments, FUNCTIONS[spec["operation"]](*(x.float() for x in arguments))


def shapes(spec):
    """The arguments of a product's function without values, for tensors that are fake."""
    *batch, m, n, k = spec["sizes"]
    dtype = DTYPES[spec["dtype"]]
    sizes = {"linear": ((m, k), (n, k)), "mm": ((m, k), (k, n)), "linear-gelu": ((m, k), (n, k), (n,)),
             "bmm": ((*batch, m, k), (*batch, k, n)), "baddbmm": ((*batch, m, n), (*batch, m, k), (*batch, k, n)),
             "scaled": ((m, k), (n, k))}[spec["operation"]]
    scales = [torch.empty(()) for _ in range(2 * (spec["operation"] == "scaled"))]
    return [torch.empty(s, dtype=dtype) for s in sizes] + scales


def models(small):
    for spec in MODELS:
        yield spec | {"hidden": 64, "inner": 96, "heads": 4, "layers": 1, "batch": 1, "tokens": 16} if small else spec


def model(spec, device):
    """A model with random weights, the same at every call, and its arguments."""
    torch.manual_seed(0)
    if spec["name"] == "transformers-llama":
        from transformers import LlamaConfig, LlamaForCausalLM

        net = LlamaForCausalLM(LlamaConfig(
            hidden_size=spec["hidden"], intermediate_size=spec["inner"], num_hidden_layers=spec["layers"],
            num_attention_heads=spec["heads"], num_key_value_heads=spec["heads"], vocab_size=spec["vocabulary"],
            use_cache=False, attn_implementation="sdpa"))
        arguments = torch.randint(spec["vocabulary"], (spec["batch"], spec["tokens"]), device=device)
    else:
        net = torch.nn.Sequential(*(Block(spec["hidden"], spec["inner"], spec["heads"]) for _ in range(spec["layers"])))
        arguments = torch.randn(spec["batch"], spec["tokens"], spec["hidden"], device=device, dtype=torch.bfloat16)
    return net.to(device, torch.bfloat16), arguments


def loss(net, arguments):
    """The loss of a step."""
    if arguments.dtype == torch.long:
        return net(input_ids=arguments, labels=arguments).loss
    return net(arguments).float().square().mean()


class Block(torch.nn.Module):
    """A block of Llama's form: attention and a gated network, each after a root-mean-square norm."""

    def __init__(self, hidden, inner, heads):
        super().__init__()
        self.heads = heads
        self.norms = torch.nn.ModuleList([torch.nn.RMSNorm(hidden) for _ in range(2)])
        self.query, self.key, self.value, self.out = (torch.nn.Linear(hidden, hidden, bias=False) for _ in range(4))
        self.gate, self.up = (torch.nn.Linear(hidden, inner, bias=False) for _ in range(2))
        self.down = torch.nn.Linear(inner, hidden, bias=False)

    def forward(self, x):
        batch, tokens, hidden = x.shape
        y = self.norms[0](x)
        query, key, value = (
            rotated(layer(y).view(batch, tokens, self.heads, -1).transpose(1, 2), turn)
            for layer, turn in ((self.query, True), (self.key, True), (self.value, False))
        )
        y = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, tokens, hidden))
        y = self.norms[1](x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def rotated(x, turn):
    """Rotary position embedding."""
    if not turn:
        return x
    half = x.shape[-1] // 2
    position = torch.arange(x.shape[-2], device=x.device, dtype=torch.float32)
    frequency = 1e4 ** (-torch.arange(half, device=x.device, dtype=torch.float32) / half)
    angle = position[:, None] * frequency
    cosine, sine = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    first, second = x[..., :half], x[..., half:]
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), -1)
