"""Attention forward and backward of other packages, and the kernels of a recommender: trifast 0.1.12, FastVideo,
flashattention2-custom-mask, generative-recommenders and applied-ai (get.sh attention). Nothing of these was fitted."""

import importlib

KNOWN = ()


def cases(torch, device):
    """(name, shape, function) of each case: first shapes first, so that a deadline cuts shapes and no kernels."""
    def R(*shape, dtype=torch.bfloat16, grad=True, scale=.1):
        x = torch.empty(shape, dtype=dtype) if device == "cpu" else torch.randn(shape, device=device).mul_(scale).to(dtype)
        return x.requires_grad_(grad)

    def f(module, name):
        return getattr(importlib.import_module(module), name)

    def recommender(module, name):
        return f(f"generative_recommenders.ops.triton.triton_{module}", name)

    def offsets(b, n):
        """Sequences of n/2 to n tokens, the same on each machine."""
        lengths = torch.tensor([n - i * 37 % (n // 2) for i in range(b)])
        return torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]).to(device), int(lengths.sum())

    def both(call):
        def run():
            y = call()
            y.backward(torch.ones_like(y))
        return run

    def triangle(b, h, n, d):
        q, k, v, bias = R(b, h, n, n, d), R(b, h, n, n, d), R(b, h, n, n, d), R(b, h, n, n)
        mask = torch.zeros(b, n, n, dtype=torch.bool, device=device)
        return both(lambda: f("trifast", "triangle_attention")(q, k, v, bias, mask))

    def hstu(b, n, h, d):
        at, total = offsets(b, n)
        q, k, v = R(total, h, d), R(total, h, d), R(total, h, d)
        return both(lambda: recommender("hstu_attention", "triton_hstu_mha")(n, d ** -.5, q, k, v, at))

    def masked(b, h, n, d):
        q, k, v = (R(b, h, n, d, dtype=torch.float16, grad=False) for _ in range(3))
        mask = torch.ones(b, h, n, n, dtype=torch.bool, device=device)
        return lambda: f("fa2_custom_mask.fa2_custom_mask", "_attention").apply(q, k, v, mask, .1)

    def sparse(b, h, n, d):
        """Each block of 64 rows sees a quarter of the blocks."""
        q, k, v = (R(b, h, n, d, grad=False) for _ in range(3))
        blocks, kept = n // 64, n // 256
        at = torch.arange(kept, dtype=torch.int32, device=device).mul(4).expand(b, h, blocks, kept).contiguous()
        count = torch.full((b, h, blocks), kept, dtype=torch.int32, device=device)
        sizes = torch.full((blocks,), 64, dtype=torch.int32, device=device)
        return lambda: f("fastvideo_block_sparse", "triton_block_sparse_attn_forward")(q, k, v, at, count, sizes)

    def rows(module, name, vectors, *more):
        def make(n, d):
            x = [R(n, d), *(R(d) for _ in range(vectors))]
            return both(lambda: f(module, name)(*x, *more))
        return make

    def norm_and_gate(n, d):
        x, u, w, b = R(n, d), R(n, d), R(d), R(d)
        return both(lambda: recommender("hstu_linear", "triton_norm_mul_dropout")(x, u, w, b, 1e-5, 0.0, True, seed=1))

    def jagged_product(b, n, k, m):
        at, total = offsets(b, n)
        x, w, bias = R(total, k), R(b, k, m), R(b, m)
        return both(lambda: recommender("jagged", "triton_jagged_dense_bmm_add")(n, at, x, w, bias))

    def joined(b, n, _, d):
        at, total = offsets(b, n)
        x, y = R(total, d), R(total, d)
        return both(lambda: recommender("jagged", "triton_concat_2D_jagged")(2 * n, x, y, at, at))

    def embeddings(b, n, _, d):
        at, total = offsets(b, n)
        x, places, times = R(total, d), R(4096, d), R(2049, d)
        stamps = torch.arange(total, device=device)
        return both(lambda: recommender("position", "triton_add_timestamp_positional_embeddings")(
            x, at, places, times, stamps, n, 0, at[1:] - at[:-1], None, False, "sqrt"))

    def product(m, n, k):
        x, w, y = R(m, k, grad=False), R(k, n, grad=False), R(n, grad=False)
        return lambda: recommender("addmm", "triton_addmm_fwd")(x, w, y)

    def gated(m, n, k):
        x, a, b = R(m, k, grad=False), R(n, k, grad=False), R(n, k, grad=False)
        return lambda: recommender("swiglu", "triton_swiglu_fwd")(x, a, b)

    norms = "generative_recommenders.ops.triton.triton_layer_norm"
    heads, sizes = [(4, 16, 4096, 128), (16, 8, 1024, 64)], [(8192, 512), (32768, 1024), (4096, 4096)]
    tokens = [(32, 1024, 4, 128), (8, 4096, 8, 64), (128, 512, 2, 256)]
    listed = [("trifast.triangle", [(1, 4, 256, 32), (2, 8, 128, 64), (1, 4, 512, 32)], triangle),
              ("hstu.attention", tokens, hstu), ("fa2.mask", heads, masked), ("fastvideo.sparse", heads, sparse),
              ("applied.rms_norm", sizes, rows("applied_ai_rms_norm", "fused_rms_norm_fn", 1)),
              ("hstu.layer_norm", sizes, rows(norms, "triton_layer_norm", 2, 1e-5)),
              ("hstu.rms_norm", sizes, rows(norms, "triton_rms_norm", 1, 1e-5)),
              ("hstu.norm_and_gate", sizes, norm_and_gate), ("hstu.joined", tokens, joined), ("hstu.embeddings", tokens, embeddings),
              ("hstu.product", [(4096, 4096, 1024), (512, 2048, 8192)], product),
              ("hstu.gated", [(4096, 2048, 1024), (1024, 8192, 2048)], gated),
              ("hstu.jagged_product", [(32, 1024, 512, 512), (8, 2048, 256, 1024)], jagged_product)]
    for i in range(max(len(shapes) for _, shapes, _ in listed)):
        for name, shapes, make in listed:
            if i < len(shapes):
                yield name, shapes[i], lambda make=make, s=shapes[i]: make(*s)
