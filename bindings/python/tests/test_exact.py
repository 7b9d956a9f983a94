"""Orders of sums in training, on the CPU: a plain loop takes the place of the kernels, and gloo that of NCCL."""

import contextlib
import io
import json
import multiprocessing
import pathlib
import tempfile
import unittest
from unittest import mock

from origami_gemm import exact
from tests import fakecuda, needs

needs.all_of("torch", required=("ORIGAMI_REQUIRE_TORCH",))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import origami_gemm.torch as og  # noqa: E402
from origami_gemm.torch import _ops  # noqa: E402

HALF = torch.bfloat16


def plain(a, b):
    """a · b in the order of K, in fp32. An element has the same bits whatever rows and columns are beside it."""
    total = torch.zeros((a.shape[0], b.shape[1]))
    for k in range(a.shape[1]):
        total = total + a[:, k:k + 1].float() * b[k:k + 1].float()
    return total


def tree(a, b, leaves):
    """The same over equal parts of K in a binary tree, as a recursion."""
    if leaves == 1:
        return plain(a, b)
    half = a.shape[1] // 2
    return tree(a[:, :half], b[:half], leaves // 2) + tree(a[:, half:], b[half:], leaves // 2)


def of_blocks(leaves):
    """The largest tree that there is, plus the same of the rest."""
    size = 1 << len(leaves).bit_length() - 1
    return og.tree_sum(leaves[:size]) + of_blocks(leaves[size:]) if leaves[size:] else og.tree_sum(leaves)


def product(a, b, bias=None, activation="", leaves=0, out=None, invariant=False, last=None, into=None, **_):
    """In the place of a kernel."""
    assert invariant and a.shape[1] % (64 * leaves if leaves > 1 else 1) == 0
    y = tree(a, b, leaves or 1)
    y = _ops.ACTIVATIONS[activation](y if bias is None else y + bias.float())
    y = (y if last is None else y + last.float()).to(out or a.dtype)
    return y if into is None else into.copy_(y)


def kernels():
    return mock.patch.object(_ops, "product", product)


def halves(*shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(HALF)


class Gradients(unittest.TestCase):
    def setUp(self):
        self.enterContext(kernels())

    def test_a_weight_has_the_tree_of_its_blocks(self):
        """Whatever the number of blocks, and with a last one that is not full."""
        for rows in (1, 64, 65, 128, 129, 192, 320, 512, 577, 704, 1100):
            dy, x = halves(rows, 8, seed=1), halves(rows, 16, seed=2)
            total = of_blocks([plain(dy[at:at + 64].t(), x[at:at + 64]) for at in range(0, rows, 64)])
            got = _ops._ops.ordered_weight_grad(dy, x, 64, torch.float32)
            self.assertTrue(torch.equal(got, total), rows)
            self.assertTrue(torch.equal(_ops._ops.ordered_weight_grad(dy, x, 64), total.to(HALF)), rows)
            self.assertTrue(torch.equal(_ops._ops.ordered_weight_grad(dy, x), plain(dy.t(), x).to(HALF)), rows)

    def test_micro_batches(self):
        """Any split into micro-batches has the bits of one, and of a data-parallel half in a tree."""
        rows, weight = 64 * 11, halves(8, 16, seed=3)
        dy, x = halves(rows, 8, seed=1), halves(rows, 16, seed=2)
        whole = _ops._ops.ordered_weight_grad(dy, x, 64, torch.float32)
        for split in ([11], [1] * 11, [4, 7], [3, 5, 3], [8, 2, 1], [1, 10], [5, 6]):
            grad = og.WeightGrad(weight, 64, batch=rows)
            for _ in range(2):  # the second step begins anew
                at = 0
                for blocks in split:
                    part = slice(at, at + 64 * blocks)
                    _ops._ops.ordered_add_grad(grad.sums, grad.rows, dy[part], x[part], 64)
                    at += 64 * blocks
                self.assertTrue(torch.equal(grad.finish(), whole), split)
        half = lambda low, high: _ops._ops.ordered_weight_grad(dy[low:high], x[low:high], 64, torch.float32)
        self.assertTrue(torch.equal(og.tree_sum([half(0, 256), half(256, 512)]), half(0, 512)))
        pairs = og.WeightGrad(weight, 64, micro_batch=128, batch=640)
        self.assertEqual(len(pairs.sums), 3)
        for low, high in ((0, 256), (256, 384), (384, 640)):
            _ops._ops.ordered_add_grad(pairs.sums, pairs.rows, dy[low:high], x[low:high], 64)
        self.assertTrue(torch.equal(pairs.finish(), half(0, 640)))
        with self.assertRaisesRegex(ValueError, "multiple of 128"):
            _ops._ops.ordered_add_grad(pairs.sums, pairs.rows, dy[:64], x[:64], 64)
        with self.assertRaisesRegex(ValueError, "a power of two"):
            og.WeightGrad(weight, 64, micro_batch=192)

    def step(self, run, weight, split, **order):
        """Outputs, gradients of the input and of the weight of a step in micro-batches."""
        x = halves(384, 512, seed=4)
        weight = weight.detach().requires_grad_()
        grad = og.WeightGrad(weight, 64, batch=384)
        ys, dxs, at = [], [], 0
        for rows in split:
            part = x[at:at + rows].requires_grad_()
            y = run(part, weight, grad)
            (y.float() ** 2).sum().backward()
            ys.append(y.detach())
            dxs.append(part.grad)
            at += rows
        self.assertIsNone(weight.grad)
        return torch.cat(ys), torch.cat(dxs), grad.finish(HALF)

    def test_linear(self):
        """Eager and compiled, whatever the micro-batches: equal bits, and those of loops."""
        weight = halves(128, 512, seed=5) / 32
        run = lambda x, w, grad: og.linear(x, w, activation="silu", invariant=True, leaves=(8, 2), grad=grad)
        y, dx, dw = self.step(run, weight, [384])
        x = halves(384, 512, seed=4)
        before = tree(x, weight.t(), 8)
        self.assertTrue(torch.equal(y, torch.nn.functional.silu(before).to(HALF)))
        again = before.to(HALF).requires_grad_()
        (torch.nn.functional.silu(again).float() ** 2).sum().backward()
        dy, = torch.autograd.grad(torch.nn.functional.silu(again), again, (2 * y.float()).to(HALF))
        self.assertTrue(torch.equal(dx, tree(dy, weight, 2).to(HALF)))
        self.assertTrue(torch.equal(dw, _ops._ops.ordered_weight_grad(dy, x, 64)))
        for backend in (None, "aot_eager", "inductor"):
            one = run if backend is None else torch.compile(run, backend=backend)
            for split in ([384], [64, 320], [128, 128, 128]):
                got = self.step(one, weight, split)
                for name, a, b in zip(("y", "dx", "dw"), got, (y, dx, dw)):
                    self.assertTrue(torch.equal(a, b), (backend, split, name))

    def test_gradients_without_an_object(self):
        """autograd gets them, as that of a bias and of a product."""
        x, w, bias = (t.requires_grad_() for t in (halves(130, 64, seed=6), halves(32, 64, seed=7), halves(32, seed=8)))
        g = halves(130, 32, seed=9)
        og.linear(x, w, bias, invariant=True, tokens_per_block=64).backward(g)
        self.assertTrue(torch.equal(x.grad, plain(g, w).to(HALF)))
        self.assertTrue(torch.equal(w.grad, _ops._ops.ordered_weight_grad(g, x, 64)))
        ones = torch.ones(130, 1)
        blocks = [plain(g[at:at + 64].t(), ones[at:at + 64]) for at in (0, 64, 128)]
        self.assertTrue(torch.equal(bias.grad, ((blocks[0] + blocks[1]) + blocks[2])[:, 0].to(HALF)))
        a, b = x.detach().requires_grad_(), w.detach().t().contiguous().requires_grad_()
        _ops._ops.ordered_mm(a, b).backward(g)
        self.assertTrue(torch.equal(a.grad, x.grad))
        self.assertTrue(torch.equal(b.grad, plain(x.t(), g).to(HALF)))
        with self.assertRaisesRegex(ValueError, "give invariant=True too"):
            og.linear(x, w, leaves=2)
        with self.assertRaisesRegex(ValueError, "give 1, 2, 4 or 8"):
            og.linear(x, w, invariant=True, leaves=3)

    def test_the_mode(self):
        """PyTorch's linear, eager and compiled, has the trees that the mode has."""
        from origami_gemm.torch import _invariant
        self.addCleanup(og.disable_batch_invariant)
        x, w, g = halves(192, 512, seed=11), halves(128, 512, seed=12), halves(192, 128, seed=13)
        want = tree(x, w.t(), 8), tree(g, w, 2), _ops._ops.ordered_weight_grad(g, x, 64)
        with mock.patch.object(_invariant, "DEVICE", "CPU"):
            og.enable_batch_invariant(leaves=(8, 2), tokens_per_block=64)
            for run in (torch.nn.functional.linear, torch.compile(lambda x, w: torch.nn.functional.linear(x, w))):
                a, b = x.clone().requires_grad_(), w.clone().requires_grad_()
                y = run(a, b)
                y.backward(g)
                for name, got, wanted in zip(("y", "dx", "dw"), (y, a.grad, b.grad), want):
                    self.assertTrue(torch.equal(got, wanted.to(HALF)), name)
            og.disable_batch_invariant()

    def test_a_module(self):
        """A step has the same gradients of every weight, a norm's too, whatever its micro-batches."""
        grads = [gradients(block, micro, og.exact(block, tokens_per_block=64, batch=512, leaves=1))
                 for block in (Block(),) for micro in (8, 1, 2, 4)]
        for other in grads[1:]:
            self.assertTrue(all(torch.equal(a, b) for a, b in zip(grads[0], other)))
        plain = Block()
        loss(plain(SEQUENCES), SEQUENCES).backward()
        for got, wanted in zip(grads[0], plain.parameters()):
            torch.testing.assert_close(got.float(), wanted.grad.float(), atol=1e-2, rtol=5e-2)
        self.assertIs(type(plain.qkv), torch.nn.Linear)

    def test_a_norm(self):
        """It is PyTorch's, compiled too."""
        norm, x = torch.nn.RMSNorm(64, eps=1e-5).to(HALF), halves(128, 64, seed=15).requires_grad_()
        with torch.no_grad():
            norm.weight.copy_(halves(64, seed=16))
        norm(x).float().square().sum().backward()
        wanted, of_x, of_weight = norm(x), x.grad, norm.weight.grad
        for run in (norm, torch.compile(norm)):
            training = og.exact(norm, tokens_per_block=64, batch=128)
            x.grad = norm.weight.grad = None
            y = run(x)
            y.float().square().sum().backward()
            training.finish()
            training.restore()
            self.assertTrue(torch.equal(y, wanted))
            torch.testing.assert_close(x.grad, of_x, atol=1e-2, rtol=2e-2)
            torch.testing.assert_close(norm.weight.grad, of_weight, atol=0.5, rtol=2e-2)


SEQUENCES = halves(8, 64, 64, seed=14)


class Block(torch.nn.Module):
    """Attention of one head behind a norm. Each sequence has an attention of its own."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(13)
        self.norm, self.qkv = torch.nn.RMSNorm(64), torch.nn.Linear(64, 192, bias=False)
        self.out = torch.nn.Linear(64, 64, bias=False)
        self.to(HALF)

    def forward(self, x):
        each = [torch.nn.functional.scaled_dot_product_attention(*one.unsqueeze(0).chunk(3, -1), is_causal=True)[0]
                for one in self.qkv(self.norm(x))]
        return x + self.out(torch.stack(each))


def loss(y, x):
    return (y.float() - x.float().flip(-1)).square().sum() / 1024


def gradients(block, micro, training, group=None, sequences=SEQUENCES):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    for part in sequences.split(micro):
        loss(block(part), part).backward()
    training.finish(group)
    training.restore()
    grads = [p.grad for p in block.parameters()]
    block.zero_grad()
    torch.set_num_threads(threads)
    return grads


def rank(number, file, out):
    """A rank of 8: groups of 2, 4 and 8 have row- and column-parallel layers, and sums in a tree of every size."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=number, world_size=8)
    for ranks in (2, 4, 8):
        group = dist.new_group(range(ranks))
        if number >= ranks:
            continue
        sums = []
        for size in (1, 7, 1000, 70001):
            parts = [torch.randn(size, generator=torch.Generator().manual_seed(s)) for s in range(ranks)]
            sums.append(torch.equal(og.tree_all_reduce(parts[number].view(-1, 1), group).view(-1), og.tree_sum(parts)))
            sums.append(torch.equal(og.tree_all_reduce(parts[number], group, HALF), og.tree_sum(parts).to(HALF)))
        with kernels():
            x, up, down = halves(48, 512, seed=1), halves(512, 512, seed=2) / 16, halves(64, 512, seed=3) / 16
            mine = slice(number * 512 // ranks, (number + 1) * 512 // ranks)
            x.requires_grad_()
            up, down = up[mine].clone().requires_grad_(), down[:, mine].clone().requires_grad_()
            h = og.parallel_linear(x, up, rows=False, leaves=8, tokens_per_block=64, group=group)
            y = og.parallel_linear(torch.relu(h), down, rows=True, leaves=(8, 1), tokens_per_block=64, group=group)
            y.float().square().sum().backward()
            block, part = Block(), SEQUENCES.chunk(ranks)[number]
            training = og.exact(block, tokens_per_block=64, batch=64 * len(part))
            of_step = gradients(block, 1, training, group, part)
        torch.save([sums, y.detach(), x.grad, up.grad, down.grad, of_step], f"{out}/{ranks}-{number}")
    dist.barrier()
    dist.destroy_process_group()


class Ranks(unittest.TestCase):
    def test_ranks_have_the_bits_of_one(self):
        with kernels():
            x, up, down = halves(48, 512, seed=1), halves(512, 512, seed=2) / 16, halves(64, 512, seed=3) / 16
            for t in (x, up, down):
                t.requires_grad_()
            h = og.linear(x, up, invariant=True, leaves=8, tokens_per_block=64)
            y = og.linear(torch.relu(h), down, invariant=True, leaves=(8, 1), tokens_per_block=64)
            y.float().square().sum().backward()
            block = Block()
            whole = gradients(block, 8, og.exact(block, tokens_per_block=64, batch=512))
        with tempfile.TemporaryDirectory() as out:
            spawn = multiprocessing.get_context("spawn")
            processes = [spawn.Process(target=rank, args=(i, f"{out}/meet", out)) for i in range(8)]
            for p in processes:
                p.start()
            for p in processes:
                p.join(600)
                self.assertEqual(p.exitcode, 0)
            for ranks in (2, 4, 8):
                for i in range(ranks):
                    sums, got, dx, dup, ddown, of_step = torch.load(f"{out}/{ranks}-{i}")
                    mine = slice(i * 512 // ranks, (i + 1) * 512 // ranks)
                    self.assertTrue(all(sums), (ranks, sums))
                    self.assertTrue(all(torch.equal(a, b) for a, b in zip(of_step, whole)), (ranks, i))
                    for name, a, b in (("y", got, y), ("dx", dx, x.grad), ("up", dup, up.grad[mine]), ("down", ddown, down.grad[:, mine])):
                        self.assertTrue(torch.equal(a, b), (ranks, i, name))

    def test_a_tree_needs_a_power_of_two(self):
        with self.assertRaisesRegex(ValueError, "power of two"):
            og.tree_sum([torch.ones(1)] * 3)


class Launches(unittest.TestCase):
    """The road of tensors on a GPU, with tensors of the CPU in their place: the driver computes nothing."""

    def test_kernels_of_trees(self):
        out, calls = fakecuda.run(self, """
import torch, origami_gemm.torch as og
from origami_gemm.torch import _ops
_ops.stream_of = lambda device: 77
half = lambda *shape: torch.ones(shape, dtype=torch.bfloat16)
x, w = half(700, 1024).requires_grad_(), half(512, 1024).requires_grad_()
grad = og.WeightGrad(w, 64, batch=704)
og.linear(x, w, invariant=True, leaves=(8, 4), tokens_per_block=64).sum().backward()
og.linear(x[:640], w, invariant=True, leaves=(4, 8), grad=grad).sum().backward()
_ops._ops.ordered_mm(x.detach()[:1], w.detach().t(), 2, torch.float32)
print(tuple(w.grad.shape), tuple(grad.finish().shape))
for wrong in (lambda: og.linear(half(8, 1000), half(64, 1000), invariant=True, leaves=8),):
    try:
        wrong()
    except og.NotInvariant as e:
        print(e)
for row in og.explain():
    if row.calls: print(row.layer, "|", row.why, "|", row.kernel)
""")
        lines = out.splitlines()
        self.assertEqual(lines[0], "(512, 1024) (512, 1024)")
        self.assertIn("K = 1000 has no 8 leaves of whole blocks of 64", lines[1])
        for leaves in (1, 2, 4, 8):
            of = [line for line in lines[2:] if f"one order, {leaves} leaves" in line]
            self.assertTrue(of and all("x64 w" in line and (f"tree={leaves}" in line) == (leaves > 1) for line in of), out)
        # 700 rows are 10 leaves of 64, in subtrees of 8 and 2, and one of 60
        self.assertEqual(sum(c.startswith("launch ") for c in calls), 2 + 3 + 2 + 2 + 1)


class Records(unittest.TestCase):
    def test_the_first_difference(self):
        """Two runs of a model, of which one has another bit in one layer."""
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8))
        x = torch.randn(4, 8)

        def record(path):
            model.zero_grad()
            with og.Recorder(model) as recorder:
                model(x).square().sum().backward()
            recorder.save(path)
            model(x)  # not recorded

        with tempfile.TemporaryDirectory() as folder:
            first, second, third = (str(pathlib.Path(folder, name)) for name in ("1", "2", "3"))
            record(first), record(second)
            with torch.no_grad():
                model[2].bias[3] = torch.nextafter(model[2].bias[3], torch.tensor(9.0))
            record(third)
            entries = json.loads(pathlib.Path(first).read_text())
            self.assertEqual([e["name"] for e in entries[:4]], ["0", "1", "2", "the whole module"])
            self.assertEqual(sum(e["what"] == "gradient" for e in entries), 4)
            said = []
            for other in (second, third, folder):
                with contextlib.redirect_stdout(io.StringIO()) as text, contextlib.redirect_stderr(text):
                    said.append((exact.main([first, other]), text.getvalue()))
        self.assertEqual(said[0], (0, f"all {len(entries)} tensors have the same bits\n"))
        self.assertEqual(said[1], (1, f"tensor 3 of {len(entries)}, output of 2 (torch.float32 (4, 8)), has other bits\n"))
        self.assertEqual(said[2][0], 2)
        self.assertIn("in the first run only", exact.difference(entries, entries[:5]))
        self.assertIn("the shape is", exact.difference(entries[:1], [entries[0] | {"shape": [1]}]))

    def test_digests(self):
        """Of places as of bits: no zero has the digest of another zero, nor a swap."""
        x = torch.arange(1000, dtype=torch.float32)
        seen = {og._exact.digest(t) for t in (x, x.flip(0), x.to(HALF), -x, torch.zeros(3), -torch.zeros(3), torch.zeros(4))}
        self.assertEqual(len(seen), 7)


if __name__ == "__main__":
    unittest.main()
