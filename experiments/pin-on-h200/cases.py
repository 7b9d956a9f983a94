"""Public functions whose autotuned Triton kernels are measured, forward and backward, with the shapes of training and
serving. No kernel of the data set h200-pin is among what is kept."""

import importlib

SHAPES = [(4, 4096, 16, 128), (1, 16384, 32, 64), (8, 2048, 8, 128), (2, 8192, 8, 64), (1, 4096, 32, 128)]
ROWS = [(8192, 4096), (65536, 512), (1024, 16384), (32768, 1024), (4096, 2048)]
# the 24 kernels on which the model's numbers were chosen
KNOWN = """matmul_kernel addmm_kernel _scaled_int8_mm_kernel _fused_up_proj_swiglu_kernel _bmm_chunk_fwd_kernel _attn_fwd
parallel_nsa_fwd_kernel parallel_stickbreaking_attn_fwd_kernel parallel_stickbreaking_attn_bwd_kernel_dq
chunk_gated_delta_rule_fwd_kernel_h_blockdim64 chunk_scaled_dot_kkt_fwd_kernel merge_16x16_to_64x64_inverse_kernel
fused_recurrent_rwkv7_fwd_kernel _chunk_state_fwd_kernel causal_conv1d_fwd_kernel layer_norm_gated_fwd_kernel
softmax_fwd_kernel triton_fp8_blockwise_act_quant_lhs_kernel parallel_wall_attn_fwd_kernel
chunk_global_cumsum_vector_kernel _token_gather_weighted_sum_kernel swiglu_fwd_kernel _dequant_mxfp8_kernel
_dyt_fwd_kernel""".split()


def cases(torch, device):
    """(name, shape, function) of each case."""
    def R(*shape, dtype=torch.bfloat16, grad=False, scale=1.0):
        x = torch.empty(shape, dtype=dtype) if device == "cpu" else torch.randn(shape, device=device).mul_(scale).to(dtype)
        return x.requires_grad_(grad)

    def both(call):
        def run():
            y = call()
            y = y[0] if isinstance(y, tuple) else y
            y.backward(torch.ones_like(y))
        return run

    def f(module, name):
        return getattr(importlib.import_module(module), name)

    def qkv(b, t, h, d, extra=0):
        return [R(b, t, h, d, grad=True, scale=.1) for _ in range(3 + extra)]

    def gate(*shape):
        g = R(*shape, dtype=torch.float32)
        return (-(g.abs() * .05)).detach().requires_grad_()

    def attention(module, name, *more):
        """A function of q, k, v and what else it takes, which is made of its sizes."""
        def make(b, t, h, d):
            q, k, v = qkv(b, t, h, d)
            return both(lambda: f(module, name)(q, k, v, *(one(b, t, h, d) for one in more)))
        return make

    def rows(module, name, count, vectors, *more):
        """A function of so many matrices of rows, and vectors of a row's length."""
        def make(n, d):
            x = [R(n, d, grad=True) for _ in range(count)] + [R(d, grad=True) for _ in range(vectors)]
            return both(lambda: f(module, name)(*x, *more))
        return make

    def of_heads(b, t, h, d):
        return gate(b, t, h)

    def beta(b, t, h, d):
        return R(b, t, h).sigmoid()

    def parallel(b, t, h, d):
        return attention("fla.ops.attn", "parallel_attn")(b, min(t, 4096), h, d)

    def rwkv7(b, t, h, d):
        r, k, v, a, bb = qkv(b, t, h, 64, 2)
        return both(lambda: f("fla.ops.rwkv7", "chunk_rwkv7")(r, gate(b, t, h, 64), k, v, a, bb))

    def hgrn(b, t, h, d):
        x = R(b, t, h * d // 4, grad=True)
        return both(lambda: f("fla.ops.hgrn", "fused_recurrent_hgrn")(x, gate(b, t, h * d // 4)))

    def slots(b, t, h, d):
        return R(b, t, h, 64, grad=True)

    def gate_of_slots(b, t, h, d):
        return gate(b, t, h, 64)

    def l2(n, d):
        return rows("fla.modules.l2norm", "l2norm", 1, 0)(n * d // 128, 128)

    def rotary(b, t, h, d):
        x, cos, sin = R(b, t, h, d, grad=True), R(t, d // 2), R(t, d // 2)
        return both(lambda: f("fla.modules.rotary", "rotary_embedding")(x, cos, sin))

    def shift(b, t, h, d):
        x = R(b, t, h * d, grad=True)
        return both(lambda: f("fla.modules.token_shift", "token_shift")(x))

    def conv(b, t, h, d):
        x, w = R(b, t, h * d, grad=True), R(h * d, 4, grad=True)
        return both(lambda: f("fla.modules.conv.causal_conv1d", "causal_conv1d")(x, w, activation="silu"))

    def softmax(n, d):
        p, dp = R(n, d, dtype=torch.float32), R(n, d, dtype=torch.float32)
        return lambda: f("fla.ops.utils.softmax", "softmax_bwd")(p, dp)

    def cumsum(b, t, h, d):
        s = gate(b, t, h, d)
        return lambda: f("fla.ops.utils.cumsum", "chunk_local_cumsum")(s, 64)

    for shapes, makers in (
        (SHAPES, {"gated_delta_rule": attention("fla.ops.gated_delta_rule", "chunk_gated_delta_rule", of_heads, beta),
                  "delta_rule": attention("fla.ops.delta_rule", "chunk_delta_rule", beta),
                  "gla": attention("fla.ops.gla", "chunk_gla", gate),
                  "simple_gla": attention("fla.ops.simple_gla", "chunk_simple_gla", of_heads),
                  "kda": attention("fla.ops.kda", "chunk_kda", gate, beta), "parallel_attn": parallel, "rwkv7": rwkv7,
                  "hgrn": hgrn, "gsa": attention("fla.ops.gsa", "chunk_gsa", slots, gate_of_slots), "rotary": rotary,
                  "token_shift": shift, "causal_conv1d": conv, "local_cumsum": cumsum}),
        (ROWS, {"rms_norm": rows("fla.modules.layernorm", "rms_norm", 1, 1, None), "l2norm": l2,
                "rms_norm_gated": rows("fla.modules.fused_norm_gate", "rms_norm_gated", 2, 1, None), "softmax_bwd": softmax,
                "swiglu": rows("fla.modules.activations", "swiglu", 2, 0),
                "logsigmoid": rows("fla.modules.activations", "logsigmoid", 1, 0)}),
    ):
        for name, make in makers.items():
            for s in shapes:
                yield name, s, lambda make=make, s=s: make(*s)
