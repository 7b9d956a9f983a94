"""Whole models with oi.enable(kernels=True) and with og.use() beside torch.compile alone, on a Hopper GPU.
python3 experiments/run.py models-on-h100 [word ...]: the models whose names have one of the words. Names of Hugging Face's
end in HF."""
import copy, math, os, sys, tempfile, time
os.environ.setdefault("XDG_CACHE_HOME", tempfile.mkdtemp())
import torch
import torch.nn.functional as F
import bench
import origami_gemm.inductor as oi
import origami_gemm.torch as og
START = time.time()
MOST = float(os.environ.get("SECONDS_MOST", 470))
ROUNDS = 15
FP8 = torch.float8_e4m3fn
torch.manual_seed(1)


class Norm(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x, x.shape[-1:], self.weight)


class MLP(torch.nn.Module):
    """As Hugging Face has it for Qwen2 and Llama."""

    def __init__(self, width, hidden):
        super().__init__()
        self.gate_proj = torch.nn.Linear(width, hidden, bias=False)
        self.up_proj = torch.nn.Linear(width, hidden, bias=False)
        self.down_proj = torch.nn.Linear(hidden, width, bias=False)
        self.act_fn = torch.nn.SiLU()

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class Decoder(torch.nn.Module):
    """A layer of Qwen2 or Llama. Decoding, each of T sequences has one new token and a cache of 256; otherwise one
    sequence has T tokens. Rotary embeddings are left out."""

    def __init__(self, width, hidden, heads, kv, bias):
        super().__init__()
        self.heads, self.kv, self.size = heads, kv, width // heads
        line = lambda i, o, b=False: torch.nn.Linear(i, o, bias=b)
        self.norm1, self.norm2 = Norm(width), Norm(width)
        self.qkv, self.out = line(width, (heads + 2 * kv) * self.size, bias), line(width, width)
        self.mlp = MLP(width, hidden)

    def forward(self, x, cache):
        t = x.shape[0]
        q, k, v = self.qkv(self.norm1(x)).split([self.heads * self.size, self.kv * self.size, self.kv * self.size], 1)
        if cache is None:
            q, k, v = (y.view(1, t, -1, self.size).transpose(1, 2) for y in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        else:
            q, k, v = (y.view(t, -1, 1, self.size) for y in (q, k, v))
            k, v = torch.cat([cache, k], 2), torch.cat([cache, v], 2)
            y = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        x = x + self.out(y.transpose(1, 2).reshape(t, -1))
        return x + self.mlp(self.norm2(x))


class Encoder(torch.nn.Module):
    """A layer of BERT or of a vision transformer."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x, causal=False):
        b, t, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Stack(torch.nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, x, extra):
        for layer in self.layers:
            x = layer(x, extra)
        return x


class Line(torch.nn.Module):
    """A layer in fp8: a scale for each output channel, and for each token as it comes."""

    def __init__(self, like, fast):
        super().__init__()
        w = like.weight.data.float()
        scale = w.abs().amax(1, keepdim=True) / 448
        self.fast = fast
        self.register_buffer("weight", (w / scale).to(FP8))
        self.register_buffer("scale", scale.t().contiguous())

    def forward(self, x):
        scale = (x.abs().amax(1, keepdim=True).float() / 448).clamp(min=1e-12)
        q = (x.float() / scale).clamp(-448, 448).to(FP8)
        return torch._scaled_mm(q, self.weight.t(), scale, self.scale, out_dtype=torch.bfloat16, use_fast_accum=self.fast)


class Hugging(torch.nn.Module):
    """A model of transformers with random weights. Embeddings or images go in, hidden states come out."""

    def __init__(self, kind, layers, **sizes):
        super().__init__()
        import transformers

        config = transformers.AutoConfig.for_model(kind, num_hidden_layers=layers, attn_implementation="sdpa", **sizes)
        if hasattr(config, "use_cache"):
            config.use_cache = False
        self.vision = hasattr(config, "image_size")
        self.model = transformers.AutoModel.from_config(config).eval()

    def forward(self, x, _):
        return (self.model(pixel_values=x) if self.vision else self.model(inputs_embeds=x))[0]


def hugging():
    """Decoders while they prefill and, with one token of each sequence, decode; encoders; vision models."""
    qwen3 = dict(hidden_size=2048, intermediate_size=6144, num_attention_heads=16, num_key_value_heads=8, head_dim=128, vocab_size=1024)
    llama = dict(hidden_size=3072, intermediate_size=8192, num_attention_heads=24, num_key_value_heads=8, head_dim=128, vocab_size=1024)
    text = [
        ("Qwen3 1.7B prefill", "qwen3", 4, qwen3, 1, 1024), ("Qwen3 1.7B decode", "qwen3", 6, qwen3, 64, 1),
        ("Llama 3.2 3B prefill", "llama", 4, llama, 1, 2048), ("Llama 3.2 3B decode", "llama", 6, llama, 16, 1),
        ("Granite 3 2B prefill", "granite", 4, dict(hidden_size=2048, intermediate_size=8192, num_attention_heads=32,
                                                     num_key_value_heads=8, vocab_size=1024), 1, 1024),
        ("StarCoder2 3B prefill", "starcoder2", 4, dict(hidden_size=3072, intermediate_size=12288, num_attention_heads=24,
                                                        num_key_value_heads=2, vocab_size=1024), 1, 1024),
        # Gate and up in one weight, and a squared ReLU.
        ("Phi-3 mini prefill", "phi3", 4, dict(hidden_size=3072, intermediate_size=8192, num_attention_heads=32, vocab_size=1024,
                                               pad_token_id=0), 1, 1536),
        ("Phi-3 mini decode", "phi3", 6, dict(hidden_size=3072, intermediate_size=8192, num_attention_heads=32, vocab_size=1024,
                                              pad_token_id=0), 32, 1),
        ("GLM 4 prefill", "glm", 4, dict(hidden_size=4096, intermediate_size=13696, num_attention_heads=32, num_key_value_heads=2,
                                         vocab_size=1024, pad_token_id=0), 1, 1024),
        ("Nemotron 4B prefill", "nemotron", 4, dict(hidden_size=3072, intermediate_size=9216, num_attention_heads=24,
                                                    num_key_value_heads=8, head_dim=128, vocab_size=1024), 1, 2048),
        ("RoBERTa large", "roberta", 6, dict(hidden_size=1024, intermediate_size=4096, num_attention_heads=16, vocab_size=1024,
                                          max_position_embeddings=514), 8, 512),
        ("ModernBERT large", "modernbert", 6, dict(hidden_size=1024, intermediate_size=2624, num_attention_heads=16, vocab_size=1024,
                                                   pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2), 8, 512),
    ]
    for name, kind, layers, sizes, batch, tokens in text:
        yield (f"{name}, {batch} x {tokens}, HF", lambda k=kind, n=layers, s=sizes: Hugging(k, n, **s),
               lambda b=batch, t=tokens, w=sizes["hidden_size"]: (torch.randn(b, t, w), None), batch * tokens, False)
    large = dict(hidden_size=1024, intermediate_size=4096, num_attention_heads=16)
    for name, kind, batch, patch in (("CLIP ViT-L/14", "clip_vision_model", 16, 14), ("ViT-L/16", "vit", 32, 16),
                                     ("BEiT large", "beit", 16, 16)):
        tokens = (224 // patch) ** 2 + 1
        yield (f"{name}, {batch} x {tokens}, HF", lambda k=kind, p=patch: Hugging(k, 6, patch_size=p, image_size=224, **large),
               lambda b=batch: (torch.randn(b, 3, 224, 224), None), batch * tokens, False)


def quantized(model, fast):
    for one in list(model.modules()):
        for name, child in list(one.named_children()):
            if type(child) is torch.nn.Linear:
                setattr(one, name, Line(child, fast))
    return model


def cases():
    qwen = lambda: Stack(Decoder(3584, 18944, 28, 4, True) for _ in range(6))
    llama = lambda: Stack(Decoder(4096, 14336, 32, 8, False) for _ in range(6))
    yield ("BERT-large, 8 x 384", lambda: Stack(Encoder(1024, 16) for _ in range(24)),
           lambda: (torch.randn(8, 384, 1024), False), 8 * 384, False)
    yield ("ViT-L, 16 x 256", lambda: Stack(Encoder(1024, 16) for _ in range(24)),
           lambda: (torch.randn(16, 256, 1024), False), 16 * 256, False)
    for name, make, kv, size in (("Qwen2-7B, 6 layers", qwen, 4, 128), ("Llama 3 8B, 6 layers", llama, 8, 128)):
        for t in (1, 16, 64, 128, 3000):
            width = 3584 if "Qwen" in name else 4096
            yield f"{name}, {t} tokens", make, lambda t=t, w=width, kv=kv, size=size: (
                torch.randn(t, w), None if t == 3000 else torch.randn(t, kv, 256, size)), t, False
    for t in (1, 16, 64, 3000):
        yield f"Llama 3 8B in fp8, 6 layers, {t} tokens", llama, lambda t=t: (
            torch.randn(t, 4096), None if t == 3000 else torch.randn(t, 8, 256, 128)), t, False
    yield ("GPT-2 large training, 2 x 1024", lambda: Stack(Encoder(1280, 20) for _ in range(12)),
           lambda: (torch.randn(2, 1024, 1280), True), 2 * 1024, True)
    yield from hugging()


def stepper(model, x, extra, training):
    if not training:
        return lambda: model(x, extra)
    def step():
        for p in model.parameters():
            p.grad = None
        model(x, extra).float().square().mean().backward()
    return step


def shares(run):
    """What our kernels and cuBLAS's take of the time of all kernels."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as p:
        run()
        torch.cuda.synchronize()
    ours = cublas = rest = 0.0
    for e in p.key_averages():
        t = e.self_device_time_total
        if e.key.startswith("wgmma_"):
            ours += t
        elif any(part in e.key for part in ("gemm", "nvjet", "cutlass", "gemv", "splitK", "cublas")) and "fmha" not in e.key:
            cublas += t
        else:
            rest += t
    return {"ours": ours / (ours + cublas + rest), "cublas": cublas / (ours + cublas + rest)}


def off(got, want):
    """The relative error in the norm, of tensors together."""
    got, want = ([y] if torch.is_tensor(y) else list(y) for y in (got, want))
    return math.sqrt(sum(float((a.detach().double() - b).square().sum()) for a, b in zip(got, want))
                     / sum(float(b.square().sum()) for b in want))


def gradients(model):
    return [p.grad for p in model.parameters()]


def runner(model, kind, x, extra, m, training):
    """A step, its first call's seconds, and what the layers run on."""
    begin = time.time()
    og.restore(model)
    if kind == "used":
        og.use(model, m=(m, m))
    elif kind == "enabled":
        oi.enable(kernels=True)
    torch._dynamo.reset()
    compiled = torch.compile(model)
    step = stepper(compiled, x, extra, training)
    step()
    torch.cuda.synchronize()
    first = time.time() - begin
    oi.disable()
    kernels = [f"{r.layer}: {r.kernel or r.why}" for r in og.explain() if r.m_low]
    for _ in range(3):
        step()
    og.wait()  # the products of the gradients
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    return compiled, step, first, kernels


def measure(name, make, inputs, m, training):
    og.clear()
    model = make().to("cuda", torch.bfloat16)
    x, extra = (y.to("cuda", torch.bfloat16) if torch.is_tensor(y) else y for y in inputs())
    row, runs = {"model": name, "m": m}, {}
    with torch.set_grad_enabled(training):
        exact = copy.deepcopy(model).double()
        want = exact(x.double(), extra.double() if torch.is_tensor(extra) else extra)
        if training:
            want.square().mean().backward()
        want, slopes = want.detach(), gradients(exact) if training else None
    del exact
    torch.cuda.empty_cache()
    kinds = ("plain", "enabled", "used")
    if "fp8" in name:
        quantized(model, False)
    with torch.set_grad_enabled(training):
        models = {kind: copy.deepcopy(model) for kind in kinds}  # use() may give weights other memory than a graph knows
        for kind in kinds:
            compiled, step, first, kernels = runner(models[kind], kind, x, extra, m, training)
            error = off(compiled(x, extra), want)
            if training:
                step()
                row[f"{kind} gradients"] = off(gradients(models[kind]), slopes)
            g = bench.graph([step])  # keeps its buffers, and runs what it was captured with
            runs[kind] = g.replay
            row[kind] = {"first": first, "error": error, "kernels": kernels, "shares": shares(runs[kind]),
                         "gated": sum(isinstance(one, og.Gated) for one in models[kind].modules()), "bytes": torch.cuda.memory_allocated()}
        times = bench.in_turns(runs, ROUNDS, max(3, int(0.02 / bench.seconds(runs["plain"], 3))))
        for kind, t in times.items():
            row[kind] |= {"seconds": t, "ratio": t / times["plain"]}
    return row


rows = [bench.about()]
for case in cases():
    if sys.argv[1:] and not any(word in case[0] for word in sys.argv[1:]):
        continue
    if time.time() - START > MOST:
        rows.append({"model": case[0], "left out": "no time"})
    else:
        try:
            rows.append(measure(*case))
        except Exception as e:  # the others go on
            rows.append({"model": case[0], "failed": f"{type(e).__name__}: {e}"[:600]})
        torch.cuda.empty_cache()
    print(rows[-1]["model"], rows[-1].get("failed", ""), *(
        f"| {k}: ratio {v['ratio']:.3f} first {v['first']:.1f} s error {v['error']:.5f} shares {v['shares']} gated {v['gated']} {v['bytes'] >> 20} MiB"
        for k, v in rows[-1].items() if isinstance(v, dict)), flush=True)
    bench.save("result", rows)
for kind in ("enabled", "used"):
    ratios = [r[kind]["ratio"] for r in rows if kind in r]
    if ratios:
        print(kind, bench.geomean(ratios), min(ratios), max(ratios))
