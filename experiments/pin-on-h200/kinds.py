"""Public functions of other kinds than scans: reductions and norms, elementwise, permutation, GEMM-like, and
Mamba's chunks; flag-gems 5.0.2, mamba, attorch and TransformerEngine (get.sh kinds). Nothing of these kernels was fitted."""

import importlib

KNOWN = """_bmm_chunk_fwd_kernel _chunk_state_fwd_kernel softmax_fwd_kernel addmm_kernel _attn_fwd swiglu_fwd_kernel""".split()
ROWS = [(8192, 4096), (65536, 512), (1024, 16384), (4096, 2048)]


def cases(torch, device):
    """(name, shape, function) of each case: first shapes first, so that a deadline cuts shapes and no kernels."""
    import triton

    triton.set_allocator(lambda size, align, stream: torch.empty(size, device=device, dtype=torch.int8))

    def R(*shape, dtype=torch.bfloat16, grad=False, scale=1.0):
        x = torch.empty(shape, dtype=dtype) if device == "cpu" else torch.randn(shape, device=device).mul_(scale).to(dtype)
        return x.requires_grad_(grad)

    def f(module, name):
        return getattr(importlib.import_module(module), name)

    def gems(name, module=None):
        return f(f"flag_gems.{'fused' if module else 'ops'}.{module or name}", name)

    def both(call):
        def run():
            y = call()
            y.backward(torch.ones_like(y))
        return run

    listed = []

    def op(name, shapes):
        def add(make):
            listed.append((name, shapes, make))
        return add

    # reductions and norms
    @op("gems.softmax", ROWS)
    def _(n, d):
        x, y = R(n, d), R(n, d)
        return lambda: (gems("softmax")(x, 1), f("flag_gems.ops.softmax", "softmax_backward")(y, x, 1, x.dtype))

    @op("gems.softmax over columns", [(1, 512, 4096), (16, 128, 2048), (4, 2048, 512)])
    def _(b, n, d):
        x = R(b, n, d)
        return lambda: gems("softmax")(x, 1)

    @op("gems.log_softmax", [(4096, 4096), (2048, 32000), (16384, 1000)])
    def _(n, d):
        y, dy = R(n, d, dtype=torch.float32), R(n, d, dtype=torch.float32)
        return lambda: f("flag_gems.ops.log_softmax", "log_softmax_backward")(dy, y, 1, y.dtype)

    @op("gems.layer_norm", ROWS)
    def _(n, d):
        x, w, b, dy = R(n, d), R(d), R(d), R(n, d)
        mean, rstd = R(n, dtype=torch.float32), R(n, dtype=torch.float32)
        return lambda: (f("flag_gems.ops.layernorm", "layer_norm")(x, (d,), w, b),
                        f("flag_gems.ops.layernorm", "layer_norm_backward")(dy, x, (d,), mean, rstd, w, b, [True, True, True]))

    for name in ("amax", "std", "var_mean", "vector_norm"):
        @op(f"gems.{name}", ROWS)
        def _(n, d, name=name):
            x = R(n, d)
            return lambda: gems(name)(x, dim=[1] if name != "std" else 1)

    @op("gems.max, all, sum, mean", ROWS)
    def _(n, d):
        x = R(n, d)
        return lambda: (f("flag_gems.ops.max", "max_dim")(x, 1), f("flag_gems.ops.all", "all_dim")(x, 1),
                        f("flag_gems.ops.prod", "prod_dim")(x, 1))

    @op("gems.batch_norm", [(32, 256, 3136), (128, 64, 1024), (16, 1024, 196)])
    def _(n, c, s):
        x, w, b = R(n, c, s), R(c), R(c)
        m, v = R(c, dtype=torch.float32), R(c, dtype=torch.float32)
        return lambda: gems("batch_norm")(x, w, b, m, v, True, .1, 1e-5)

    @op("gems.cross_entropy", [(4096, 32000), (8192, 4096), (2048, 128256)])
    def _(n, v):
        x = R(n, v, grad=True)
        y = torch.zeros(n, dtype=torch.int64) if device == "cpu" else torch.randint(v, (n,), device=device)
        return both(lambda: gems("cross_entropy_loss", "cross_entropy_loss")(x, y))

    @op("gems.weight_norm", [(4096, 4096), (1024, 16384), (32000, 1024)])
    def _(n, d):
        v, g = R(n, d, dtype=torch.float32), R(n, 1, dtype=torch.float32)
        return lambda: f("flag_gems.ops.weightnorm", "weight_norm_interface")(v, g, 0)

    @op("gems.scaled_softmax", [(4, 16, 2048, 2048), (8, 8, 1024, 4096), (1, 32, 512, 512)])
    def _(b, h, q, k):
        x = R(b, h, q, k)
        return lambda: f("flag_gems.ops.scaled_softmax", "scaled_softmax_forward")(x, .5)

    @op("mamba.layer_norm", ROWS)
    def _(n, d):
        x, w, b = R(n, d, grad=True), R(d, grad=True), R(d, grad=True)
        return both(lambda: f("mamba_ssm.ops.triton.layer_norm", "layer_norm_fn")(x, w, b))

    for name in ("LayerNorm", "RMSNorm", "Softmax", "LogSoftmax"):
        @op(f"attorch.{name}", ROWS)
        def _(n, d, name=name):
            x = R(n, d, grad=True)
            make = f("attorch", name)
            layer = make(1) if "Softmax" in name else make(d, device=x.device, dtype=x.dtype)
            return both(lambda: layer(x))

    # elementwise, gather and permutation
    @op("attorch.GELU", ROWS)
    def _(n, d):
        x = R(n, d, grad=True)
        return both(lambda: f("attorch", "GELU")()(x))

    @op("attorch.GLU", ROWS)
    def _(n, d):
        x = R(n, d, grad=True)
        return both(lambda: f("attorch", "GLU")(1)(x))

    @op("mamba.swiglu", ROWS)
    def _(n, d):
        x = R(n, 2 * d, grad=True)
        return both(lambda: f("mamba_ssm.ops.triton.k_activations", "swiglu")(x))

    @op("gems.reglu", ROWS)
    def _(n, d):
        x, dy = R(n, 2 * d), R(n, d)
        return lambda: (gems("reglu", "reglu")(x), gems("dreglu", "reglu")(dy, x))

    @op("gems.triu", ROWS)
    def _(n, d):
        x = R(n, d)
        return lambda: gems("triu")(x)

    @op("gems.index", [(100000, 1024, 8192), (32000, 4096, 4096), (500000, 128, 65536)])
    def _(rows, d, n):
        x = R(rows, d)
        at = torch.zeros(n, dtype=torch.int64) if device == "cpu" else torch.randint(rows, (n,), device=device)
        return lambda: gems("index")(x, [at])

    @op("gems.moe_sum", [(4096, 8, 2048), (1024, 2, 4096), (16384, 6, 2560)])
    def _(n, k, d):
        x, y = R(n, k, d), R(n, d)
        return lambda: gems("moe_sum", "moe_sum")(x, y)

    @op("te.permute", [(4096, 64, 8, 2048), (8192, 8, 2, 4096), (2048, 128, 8, 7168), (16384, 32, 4, 1024)])
    def _(n, experts, k, d):
        te = importlib.import_module("te_permutation")
        x, probs = R(n, d), R(n, experts, dtype=torch.float32)
        ids = torch.argsort(torch.rand(n, experts, device=device), 1)[:, :k]
        routing = torch.zeros(n, experts, dtype=torch.int32, device=device).scatter_(1, ids, 1)
        m = torch.cat([(routing.t().cumsum(1) - 1).t().reshape(n, experts)], 0)  # place within an expert
        base = routing.sum(0).cumsum(0) - routing.sum(0)
        row = torch.where(routing > 0, m + base, -1).to(torch.int32)
        order = torch.sort((row < 0).int(), dim=1, stable=True)[1].to(torch.int32)
        map_ = torch.cat([torch.gather(row, 1, order.long()), order, torch.full((n, 1), k, dtype=torch.int32, device=device)], 1).contiguous()
        y = R(n * k, d)
        return lambda: (te.permute_with_mask_map(x, map_, probs, None, None, n, experts, n * k, d, None),
                        te.unpermute_with_mask_map(y, map_, None, None, None, n, experts, d))

    # GEMM-like
    @op("gems.mv", [(4096, 4096), (28672, 4096), (2048, 16384)])
    def _(n, k):
        x, v = R(n, k), R(k)
        return lambda: gems("mv")(x, v)

    @op("gems.bmm", [(16, 1024, 1024, 128), (64, 512, 128, 512), (8, 2048, 2048, 1024), (4, 100, 4096, 4096)])
    def _(b, m, n, k):
        x, y, c = R(b, m, k), R(b, k, n), R(b, m, n)
        return lambda: (gems("bmm")(x, y), gems("baddbmm")(c, x, y))

    @op("attorch.Linear", [(8192, 4096, 4096), (512, 14336, 4096), (4096, 1024, 4096)])
    def _(m, n, k):
        x, layer = R(m, k, dtype=torch.float16), f("attorch", "Linear")(k, n, act_func="gelu", device=device, dtype=torch.float16)
        return lambda: layer(x)

    @op("attorch.Conv2d", [(32, 64, 64, 56), (16, 256, 256, 28), (64, 128, 256, 14)])
    def _(n, c, o, s):
        x = R(n, c, s, s, dtype=torch.float16)
        layer = f("attorch", "Conv2d")(c, o, 3, device=device, dtype=torch.float16)
        return lambda: layer(x)

    @op("gems.conv2d", [(32, 64, 64, 56), (16, 256, 256, 28), (64, 128, 256, 14)])
    def _(n, c, o, s):
        x, w, b = R(n, c, s, s), R(o, c, 3, 3), R(o)
        return lambda: gems("conv2d")(x, w, b, padding=1)

    # chunks of a state space model
    @op("mamba.ssd", [(4, 4096, 24, 64, 1, 128), (1, 16384, 64, 64, 8, 128), (8, 2048, 32, 64, 1, 64)])
    def _(b, t, h, d, g, n):
        x, B, C = R(b, t, h, d, grad=True), R(b, t, g, n, grad=True, scale=.1), R(b, t, g, n, grad=True, scale=.1)
        dt = R(b, t, h, dtype=torch.float32, scale=.1).abs().detach().requires_grad_()
        A = (-R(h, dtype=torch.float32).abs()).detach().requires_grad_()
        D = R(h, dtype=torch.float32, grad=True)
        return both(lambda: f("mamba_ssm.ops.triton.ssd_combined", "mamba_chunk_scan_combined")(x, dt, A, B, C, 256, D=D))

    for i in range(max(len(shapes) for _, shapes, _ in listed)):
        for name, shapes, make in listed:
            if i < len(shapes):
                yield name, shapes[i], lambda make=make, s=shapes[i]: make(*s)
