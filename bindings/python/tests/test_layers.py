"""origami_gemm._layers on a driver without a GPU: which kernel answers for which M, and when it is compiled."""

import unittest

from tests import fakecuda, needs

needs.all_of(required=("ORIGAMI_REQUIRE_LIB",))

BEGIN = """
from origami_gemm import Model, _layers as L
models = Model("sm90", "h200", kernel="wgmma"), Model("sm90", "h200", kernel="library")
layer = L.Layer(L.Key(0, 4096, 4096, "bf16", trans_b=True), L.Device(0, models))
def answers(sizes):
    return {m: "kernel" if isinstance(layer.plan(m), L.Plan) else layer.plan(m) for m in sizes}
"""


def printed(case, program):
    out, calls = fakecuda.run(case, BEGIN + program)
    return out.splitlines(), calls


class Bands(unittest.TestCase):
    def test_kernels_are_compiled_by_the_thread_once(self):
        """Before, and for other sizes, there is a reason. One kernel serves all M of its band."""
        out, calls = printed(self, """
print(layer.plan(20) is L.PENDING, layer.plan(20) is L.PENDING)
print(L.worker.wait(300))
print(answers(range(16, 32)) == dict.fromkeys(range(16, 32), "kernel"), layer.plan(200) is L.PENDING)
L.worker.wait(300)
""")
        self.assertEqual(out, ["True True", "True", "True True"])
        self.assertLess(calls.count("load"), 16)

    def test_prepared_sizes_never_compile_later(self):
        out, _ = printed(self, """
import os
layer.prepare(1, 300)
log = os.environ["FAKE_LOG"]
before = open(log).read().count("load")
found = answers(range(1, 301))
print(set(found.values()) <= {"kernel", L.LIBRARY}, before > 3, open(log).read().count("load") == before)
spans = [(s.band.m_low, s.band.m_high, s.why) for s in layer.spans]
print(spans[0][0] == 1, spans[-1][1] == 300, all(a[1] + 1 == b[0] for a, b in zip(spans, spans[1:])))
print(all((found[m] == "kernel") == (why is None) for low, high, why in spans for m in (low, high)))
own, library = models
for m in (1, 100, 250):
    mine, theirs = (x.select(m, 4096, 4096, dtype="bf16", trans_b=True).seconds for x in models)
    print(found[m] == "kernel" or mine > 0.9 * theirs)
""")
        self.assertEqual(out, ["True True True", "True True True", "True", "True", "True", "True"])

    def test_a_range_inside_of_another_replaces_its_part(self):
        out, _ = printed(self, """
layer.prepare(1, 128)
layer.prepare(33, 64)
spans = [(s.band.m_low, s.band.m_high) for s in layer.spans]
print(spans[0][0], spans[-1][1], all(a[1] + 1 == b[0] for a, b in zip(spans, spans[1:])), (33 in dict(spans), 65 in dict(spans)))
""")
        self.assertEqual(out, ["1 128 True (True, True)"])

    def test_an_alternative_differs_in_what_ctas_share(self):
        """A band takes another kernel, and only that band."""
        out, _ = printed(self, """
layer.prepare(1, 600)
span = next(s for s in layer.spans if s.why is None and "cluster" in s.band.pick.axes)
m, pick = span.band.m_high, span.band.pick
other = layer.alternative(m, pick)
print("cluster" in other.axes or other.split_k != pick.split_k, str(other) != str(pick))
before = {s.band.m_low: str(s.band.pick) for s in layer.spans}
band = layer.choose(span.band, other)
print(str(layer.plan(m).pick) == str(other), band.m_high == m)
print({low for low, old in before.items() if old != {s.band.m_low: str(s.band.pick) for s in layer.spans}[low]} == {band.m_low})
""")
        self.assertEqual(out[1:], ["True True", "True"], out)
        self.assertTrue(out[0].endswith("True"), out)

    def test_an_invariant_layer_waits_and_has_one_order(self):
        """The first call has its kernel, of one order for all M, and never cuBLAS's. Where a kernel cannot be compiled, another
        of that order runs."""
        out, calls = printed(self, """
import dataclasses, os
own = L.Device(0, models)
layer = L.Layer(dataclasses.replace(layer.key, invariant=True), own)
plans = [layer.plan(m) for m in (1, 2, 7, 30, 31, 500, 3000, 9000)]
print({type(p) for p in plans} == {L.Plan}, len({p.pick.block_k for p in plans}), len({str(p.pick) for p in plans}) > 3)
print({p.pick.split_k for p in plans}, all("skew=0" in p.pick.axes for p in plans))
other = L.Layer(dataclasses.replace(layer.key, lda=8192, epilogue="bias+gelu", trans_b=False), own)
print({other.plan(m).pick.block_k for m in (1, 64, 4096)} == {plans[0].pick.block_k})
layer.prepare(1, 300)
before = open(os.environ["FAKE_LOG"]).read().count("load")
print(all(isinstance(layer.plan(m), L.Plan) for m in range(1, 301)), open(os.environ["FAKE_LOG"]).read().count("load") == before)
layer.refuse(layer._span(20).band, "it is slow")
print(isinstance(layer.plan(20), L.Plan), "skew=0" in layer.plan(20).pick.axes)
print(layer.key, "|", L.Layer(dataclasses.replace(layer.key, k=4097), own).plan(5))
""")
        self.assertEqual(out[:-1], ["True 1 True", "{1} True", "True", "True True", "True True"])
        self.assertRegex(out[-1], "^n=4096 k=4096 bf16, one order \\| .*tensor_map")

    def test_launches(self):
        """What the driver gets: the launch of each M, and a map for each address."""
        out, calls = printed(self, """
layer.prepare(17, 32)
for m in (17, 18, 17):
    plan = layer.plan(m)
    plan.launch(1 << 20, 2 << 20, 3 << 20, 0, counters=4 << 20, partials=5 << 20)
print(layer.plan(17).calls)
""")
        self.assertEqual(out, ["2"])
        self.assertEqual(sum(c.startswith("launch ") for c in calls), 3)
        self.assertEqual(sum(c.startswith("encode 9 0x100000 4096,17,1 ") for c in calls), 1)

    def test_many_threads(self):
        out, calls = printed(self, """
import threading
failed = []
def work():
    try:
        for m in range(1, 200):
            plan = layer.plan(m)
            if isinstance(plan, L.Plan):
                plan.launch(m << 20, 2 << 20, 3 << 20, 0, counters=4 << 20, partials=5 << 20)
    except Exception as e:
        failed.append(e)
threads = [threading.Thread(target=work) for _ in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
L.worker.wait(300)
work()
print(failed, any(isinstance(layer.plan(m), L.Plan) for m in range(1, 200)))
""")
        self.assertEqual(out, ["[] True"])


class Failures(unittest.TestCase):
    def test_what_cannot_be_compiled_is_left_to_pytorch(self):
        for name, value, want in (("FAIL", "cuModuleLoadDataEx 2", "CUDA_ERROR_OUT_OF_MEMORY"),
                                  ("LOCAL", "1600", "with 1600 bytes of local memory per thread")):
            out, calls = printed(self, f"""
import os
os.environ["FAKE_{name}"] = "{value}"
layer.prepare(17, 32)
print(layer.plan(20))
print(layer.spans[0].why == layer.plan(17))
""")
            self.assertIn(want, out[0])
            self.assertEqual(out[1:], ["True"])
            self.assertEqual(calls.count("load"), calls.count("unload"))

    def test_the_gpu_of_the_driver(self):
        """Without models of its own, a device asks the driver what GPU there is."""
        out, _ = printed(self, """
import os
print(L.Device(0).own.description["device"])
os.environ["FAKE_CC"] = "80"
print(L.Layer(layer.key, L.Device(0)).plan(7))
print(L.Layer(layer.key, L.Device(3)).plan(7))
""")
        self.assertEqual(out[:2], ["h200", "the GPU is an sm80, and kernels were measured on sm90 only; "
                                           "ORIGAMI_TORCH_KERNEL=mma runs unmeasured ones"])
        self.assertIn("failed with", out[2])

    def test_a_hopper_that_was_not_measured(self):
        out, _ = printed(self, """
import os
L._cuda.Driver.name = lambda *_: "NVIDIA H800"
print(L.Layer(layer.key, L.Device(0)).plan(7))
os.environ["ORIGAMI_TORCH_KERNEL"] = "wgmma"
print(L.Device(0).why, L.Device(0).own.description["device"])
""")
        self.assertRegex(out[0], "no times of NVIDIA H800 were compared, .*; ORIGAMI_TORCH_KERNEL=wgmma tries them")
        self.assertEqual(out[1], "None h800")

    def test_kernels_of_another_family(self):
        """On an Ada, whose kernels nobody has measured, if the environment says so. They add to what C holds."""
        out, _ = printed(self, """
import dataclasses, os
os.environ.update(FAKE_CC="89", ORIGAMI_TORCH_KERNEL="mma")
ada = L.Device(0)
for key in (layer.key, dataclasses.replace(layer.key, adds=True), dataclasses.replace(layer.key, invariant=True)):
    mine = L.Layer(key, ada)
    mine.prepare(1, 16)
    print(ada.own.description["kernel"], bool(mine.plan(7).in_place), mine.plan(7).pick.num_warps > 0)
added = L.Layer(dataclasses.replace(layer.key, adds=True), L.Device(0, models))
os.environ["FAKE_CC"] = "90"
added.prepare(1, 16)
print(bool(added.plan(7).in_place))
""")
        self.assertEqual(out, ["mma False True", "mma True True", "mma False True", "False"])

    def test_a_launch_that_fails(self):
        out, _ = printed(self, """
import os
layer.prepare(17, 17)
os.environ["FAKE_FAIL"] = "cuLaunchKernel 2"
try:
    layer.plan(17).launch(1 << 20, 2 << 20, 3 << 20, 0, counters=4 << 20, partials=5 << 20)
except Exception as e:
    print(type(e).__name__, e)
""")
        self.assertEqual(out, ["Error CUDA device 0: launching a kernel: CUDA_ERROR_OUT_OF_MEMORY (2)"])

    def test_fork(self):
        """A forked child has no kernels, and its parent goes on."""
        out, _ = printed(self, """
import os
L.registry._layers[layer.key] = layer
layer.prepare(17, 32)
pid = os.fork()
if pid == 0:
    os._exit(0 if "forked" in str(layer.plan(17)) and "forked" in str(layer.plan(300)) else 1)
print(os.waitpid(pid, 0)[1], isinstance(layer.plan(17), L.Plan))
""")
        self.assertEqual(out, ["0 True"])


if __name__ == "__main__":
    unittest.main()
