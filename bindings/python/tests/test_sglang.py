"""origami_gemm.sglang as SGLang Simulator calls it. The classes have the fields and methods of its own: sglang_simulator/
time_predictor/base.py, simulation/types.py and spec/ (Apache-2.0)."""

import dataclasses
import types
import unittest

from origami_gemm import Error
from origami_gemm.sglang import TimePredictor
from tests.test_lib import CHECKOUT, CLI, setUpModule  # noqa: F401

CONFIGS = CHECKOUT / "plugins/serving/testdata/configs"


@dataclasses.dataclass
class ScheduleRequest:
    extend_length: int = 0
    past_kv_length: int = 0


@dataclasses.dataclass
class ScheduleBatch:
    reqs: list[ScheduleRequest] = dataclasses.field(default_factory=list)

    def request_info(self):
        return [[req.extend_length, req.past_kv_length] for req in self.reqs]


def predictor(config="llama-3.1-8b.json", **more):
    model, hardware = types.SimpleNamespace(model_path="llama"), types.SimpleNamespace(name="H200_SXM", vendor="NVIDIA")
    scheduler = types.SimpleNamespace(tp_size=1, ep_size=1, dp_size=1, backend_name="sglang")
    return TimePredictor(model, hardware, scheduler, config_json=str(CONFIGS / config), origami=str(CLI), **more)


class Times(unittest.TestCase):
    def test_steps(self):
        p = predictor()
        self.addCleanup(p.close)
        of = lambda *requests: p.predict_infer_time(ScheduleBatch([ScheduleRequest(*r) for r in requests]))
        decode, prefill = of((1, 1024), (1, 1024), (1, 1024)), of((512, 512), (1024, 0), (512, 0))
        self.assertTrue(0.001 < decode < 0.02 and decode < prefill < 0.2, (decode, prefill))
        self.assertGreater(of((1, 1024), (512, 0)), of((512, 0)))
        self.assertEqual(0, of())
        low, high = p.interval([[1, 1024]] * 3)
        self.assertTrue(low < decode < high, (low, decode, high))

    def test_what_cannot_be_answered(self):
        with self.assertRaisesRegex(Error, "tp: 16 GPUs share the model"):
            predictor(tp=16)
        with self.assertRaisesRegex(Error, "no-such"):
            predictor("no-such.json")
        p = predictor()
        p.close()
        with self.assertRaisesRegex(Error, "has ended"):
            p.predict_infer_time(ScheduleBatch([ScheduleRequest(1, 1)]))


if __name__ == "__main__":
    unittest.main()
