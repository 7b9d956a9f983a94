"""Tests of what an executor plugin is made of. The whole, under the real host, is tested in sdk/host/python_test.go."""

import base64
import json
import logging
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import types
import unittest
import unittest.mock

import grpc
from origami_gemm_plugin import (Config, DeviceError, DiagnosticError, InputError, Manifest, MeasureOptions, Problem,
                            _certificate, _serve, _wire)

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import toy  # noqa: E402

HERE = pathlib.Path(__file__).parent
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}


def problem(**change):
    return {"m": 2, "n": 3, "k": 4, "batch": 1, "dtype": "bf16"} | change


CONFIG = {"block_m": 128, "block_n": 64, "block_k": 32, "group_m": 8, "num_warps": 4, "num_stages": 3, "split_k": 1,
          "kernel": "triton"}


class Conversions(unittest.TestCase):
    def test_problem(self):
        self.assertEqual(_wire.from_problem(problem()), Problem(2, 3, 4, 1, "k", "n", "bf16"))
        self.assertEqual(
            str(_wire.from_problem(problem(trans_a=True, trans_b=True, batch=5))),
            "2x3x4 bf16 batch 5 trans-a trans-b",
        )

    def test_storage(self):
        plain = _wire.from_problem(problem(k=96))
        self.assertEqual((plain.output, plain.ld("a"), plain.ld("b"), plain.vector_bytes("a"), plain.vector_bytes("c")),
                         ("bf16", 96, 3, 16, 2))
        p = _wire.from_problem(
            problem(out_dtype="fp32", lda=6, ldb=4, ldc=3, align_a=2, align_b=16, trans_b=True))
        self.assertEqual(str(p), "2x3x4 bf16 out fp32 trans-b lda 6 align 2,16,16")
        self.assertEqual([p.stride(matrix) for matrix in "abc"], [12, 12, 6])
        self.assertEqual([p.vector_bytes(matrix) for matrix in "abc"], [2, 8, 4])
        for dtype, output in (("int8", "int32"), ("fp8_e5m2", "fp16"), ("tf32", "fp32")):
            self.assertEqual(_wire.from_problem(problem(dtype=dtype)).output, output)

    def test_groups(self):
        p = _wire.from_problem(problem(m=165, groups=[120, 0, 45]))
        self.assertEqual((p.groups, p.rows("a"), p.stride("b")), ((120, 0, 45), (165, 4), 12))
        self.assertEqual(str(p), "165x3x4 bf16 groups 120,0,45")
        self.assertEqual(str(_wire.from_problem(problem(m=100, groups=[1] * 100))), "100x3x4 bf16 in 100 groups")
        for change, why in (
            ({"groups": [120, 44]}, "the groups have 164 rows, and m is 165"),
            ({"groups": [166, -1]}, "a group has -1 rows"),
            ({"groups": [0] * 1024 + [165]}, "there are 1025 groups"),
            ({"groups": [165, 0], "batch": 2}, "a batch of 2 has groups"),
            ({"groups": [165, 0], "trans_a": True}, "A with groups is contiguous along m"),
        ):
            with self.assertRaisesRegex(InputError, why):
                _wire.from_problem(problem(**({"m": 165} | change)))

    def test_refused_problems(self):
        for change, says in (
            ({"dtype": "int32"}, "dtype .int32. is no type of operands"),
            ({"out_dtype": "fp16"}, "no hardware multiplies bf16 operands into fp16 results"),
            ({"out_dtype": 99}, "malformed request: out_dtype is 99"),
            ({"lda": 3}, "lda is 3, and a row of A has 4 elements"),
            ({"ldc": -1}, "ldc is -1"),
            ({"ldb": 1 << 62}, "B with ldb .* overflows"),
            ({"align_a": 3}, "align_a is 3"),
            ({"align_b": 32}, "align_b is 32"),
            ({"align_c": 1}, "align_c is 1, and an element of C has 2 bytes"),
            ({"nest": "m2:1:0:3"}, "executors in Python multiply matrices"),
            ({"alpha": 2}, "executors in Python compute A·B, and alpha is 2 and beta 0"),
            ({"beta": 1}, "alpha is 1 and beta 1"),
            ({"epilogue": "bias+relu"}, "the epilogue bias.relu"),
            ({"m": 0}, "m is 0, or missing"),
            ({"k": -1}, "k is -1, or missing"),
            ({"batch": True}, "malformed request: batch is True"),
            ({"dtype": ""}, "dtype .. is no type of operands"),
            ({"a_major": "k"}, "malformed request: no such key: a_major"),
            ({"m": 1 << 20, "n": 1 << 20, "k": 1 << 20}, "overflows"),
            ({"m": (1 << 63) - 1}, "overflows"),
        ):
            with self.assertRaisesRegex(InputError, says):
                _wire.from_problem(problem(**change))

    def test_config(self):
        c = _wire.from_config(CONFIG)
        self.assertEqual((c, str(c)), (Config("triton", 128, 64, 32, 8, 4, 3, 1), "128x64x32 w4 s3 g8"))
        self.assertEqual(str(_wire.from_config({"kernel": "cublas"})), "cublas")
        self.assertEqual(_wire.from_config(CONFIG | {"group_m": 0}).group_m, 0)
        c = _wire.from_config(CONFIG | {"axes": {"vector": "8", "cluster": "4x1"}})
        self.assertEqual(c.axes, (("cluster", "4x1"), ("vector", "8")))
        self.assertEqual((c.axis("cluster", "1x1"), c.axis("schedule", "simple")), ("4x1", "simple"))
        self.assertEqual(str(c), "128x64x32 w4 s3 g8 cluster=4x1 vector=8")
        for change in ({"block_m": 0}, {"split_k": -1}, {"num_stages": 4097}, {"group_m": -1}):
            with self.assertRaisesRegex(InputError, "outside 1 to 4096"):
                _wire.from_config(CONFIG | change)
        for change in ({"kernel": ""}, {"kernel": 2}, {"block_m": 1.5}, {"axes": []}, {"blocks": 1}):
            with self.assertRaisesRegex(InputError, "malformed request"):
                _wire.from_config(CONFIG | change)

    def test_executors_get_only_what_they_heed(self):
        plain, e5m2, padded, axes = problem(), problem(dtype="fp8_e5m2"), problem(lda=16), CONFIG | {"axes": {"a": "1"}}

        class Reached(Exception):
            pass

        class Plain:
            manifest = Manifest("x", "1")

            def open(self):
                raise Reached

        def compile(problem, config, **knows):
            provider = Plain()
            vars(provider).update(knows)
            _serve.ExecutorService(provider).compile({"problem": problem, "config": config}, None)

        for q, c, knows in (
            (plain, CONFIG, {}), (plain, axes, {"named_axes": True}), (padded, CONFIG, {"whole_problems": True}),
            (e5m2, CONFIG, {"whole_problems": True}),
        ):
            with self.assertRaises(Reached):
                compile(q, c, **knows)
        for q, c, heeds in ((plain, axes, "named axes"), (padded, CONFIG, "leading"), (e5m2, CONFIG, "fp8_e5m2")):
            with self.assertRaisesRegex(InputError, heeds):
                compile(q, c)

    def test_measure(self):
        self.assertEqual(
            _wire.from_measure({"kernel": 1, "warm_l2": True, "input": "x", "warmup": 2, "runs": 3}),
            (1, MeasureOptions(True, "x", 2), 3),
        )
        for bad in ({"runs": 0}, {"runs": _wire.MAX_RUNS + 1}, {"runs": 1, "warmup": -1}, []):
            with self.assertRaisesRegex(InputError, "malformed request"):
                _wire.from_measure(bad)

    def test_messages(self):
        self.assertEqual(_wire.message({"a": 1}), b'\x0a\x08{"a": 1}')
        others = b"\x10\x81\x01\x1a\x02xx\x21" + bytes(8) + b"\x2d" + bytes(4)
        self.assertEqual(_wire.value(others + _wire.message(["x" * 300])), ["x" * 300])
        self.assertIsNone(_wire.value(others))
        for bad in (b"\x0a\x01{", b"\x0a", b"\x80", b"\x0a\x01\xff"):
            with self.assertRaisesRegex(InputError, "malformed request: no JSON"):
                _wire.value(bad)

    def test_text_that_is_no_unicode(self):
        device = _wire.device(types.SimpleNamespace(name="a\udc80b", arch="x", attributes={}, kernels=[], libraries=[]))
        self.assertEqual(_wire.value(_wire.message(device))["name"], "a?b")

    def test_status(self):
        detail, kind = _wire.diagnostic(InputError("w" * 300, where="here", fix="fix"), 200)
        words = b"\x08\x02\x12\xc8\x01" + b"w" * 200 + b"\x1a\x04here\x22\x03fix"
        name = b"type.googleapis.com/origami.plugin.v1.Diagnostic"
        self.assertEqual((detail, kind), (b"\x0a" + bytes([len(name)]) + name + b"\x12\xd8\x01" + words, "KIND_INPUT"))
        self.assertEqual(_wire.status(3, "ä", b"any"), b"\x08\x03\x12\x02\xc3\xa4\x1a\x03any")


class Service(unittest.TestCase):
    """The service without gRPC around it."""

    def setUp(self):
        self.service = _serve.ExecutorService(toy.Provider())
        self.context = unittest.mock.Mock()
        self.closed = []
        self.patch = unittest.mock.patch.object(toy.Kernel, "close", lambda kernel: self.closed.append(kernel))
        self.patch.start()
        self.addCleanup(self.patch.stop)

    def compile(self):
        answer = self.service.compile({"problem": problem(), "config": CONFIG | {"kernel": "toy"}}, self.context)
        return answer and answer["kernel"]

    def release(self, number):
        self.service.release({"kernel": number}, self.context)

    def test_numbers_of_two_processes_differ(self):
        a, b = self.compile(), self.compile()
        other = _serve.ExecutorService(toy.Provider())
        self.assertEqual(b, a % (1 << 64) + 1)
        self.assertNotIn(other._last, range(a - 1000, b + 1000))

    def test_the_number_is_never_zero(self):
        self.service._last = (1 << 64) - 1
        self.assertEqual([self.compile(), self.compile()], [1, 2])

    def test_a_kernel_in_use_is_closed_by_its_last_user(self):
        number, entered, go_on = self.compile(), threading.Event(), threading.Event()

        def check(kernel):
            entered.set()
            go_on.wait()
            return toy.Kernel(kernel.problem, kernel.config)

        user = threading.Thread(target=lambda: self.service._use(number, check))
        user.start()
        entered.wait()
        self.release(number)
        with self.assertRaises(_serve._KernelMissing):
            self.service._use(number, check)
        self.assertEqual(self.closed, [])
        go_on.set()
        user.join()
        self.assertEqual(len(self.closed), 1)
        self.release(number)  # an unknown one is no error

    def test_a_kernel_that_nobody_waits_for_is_closed(self):
        self.context.is_active.return_value = False
        self.assertIsNone(self.compile())
        self.assertEqual((len(self.closed), self.service._kernels), (1, {}))

    def test_the_end_closes_what_is_left(self):
        self.compile(), self.compile()
        self.service.end()
        self.assertEqual(len(self.closed), 2)

    def test_a_failure_to_open_is_not_kept(self):
        provider = unittest.mock.Mock()
        provider.open.side_effect = [DeviceError("not yet"), toy.Executor()]
        service = _serve.ExecutorService(provider)
        with self.assertRaises(DeviceError):
            service.devices(None, None)
        self.assertEqual(len(service.devices(None, None)), 1)


class Process(unittest.TestCase):
    def test_describe(self):
        out = subprocess.run(
            [sys.executable, HERE / "toy.py", "describe"], capture_output=True, text=True, env=ENVIRONMENT, check=True
        )
        self.assertEqual(
            json.loads(out.stdout),
            {
                "info": {"name": "toy", "version": "1.2.3"},
                "protocols": [2],
                "executor": {"name": "toy", "version": "1.2.3"},
            },
        )

    def test_by_hand(self):
        out = subprocess.run([sys.executable, HERE / "toy.py"], capture_output=True, text=True, env=ENVIRONMENT)
        self.assertEqual((out.returncode, out.stdout), (2, ""))
        self.assertIn("this is the plugin toy 1.2.3 of origami", out.stderr)

    def test_health(self):
        class Failing:
            manifest = Manifest("x", "1")

            def health(self):
                raise DiagnosticError("no licence", fix="buy one")

        self.assertEqual(_serve.describe(Failing())["info"]["failing"], "no licence; buy one")

    def test_log_lines(self):
        def line(level, message, exc_info=None):
            return json.loads(
                _serve._HclogFormatter().format(logging.LogRecord("a.b", level, "f", 1, message, ("x",), exc_info))
            )

        entry = line(logging.WARNING, "two\nlines %s")
        self.assertEqual((entry["@level"], entry["@message"], entry["@module"]), ("warn", "two\nlines x", "a.b"))
        self.assertRegex(entry["@timestamp"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00$")
        self.assertEqual(
            [line(n, "%s")["@level"] for n in (1, 5, 10, 20, 40, 50)],
            ["trace", "trace", "debug", "info", "error", "error"],
        )
        try:
            raise ValueError("why")
        except ValueError:
            self.assertIn("ValueError: why", line(logging.ERROR, "%s", sys.exc_info())["@message"])


class Connection(unittest.TestCase):
    """A plugin's process, met by a client of gRPC."""

    def start(self, **environment):
        folder = (
            self.enterContext(tempfile.TemporaryDirectory()) if hasattr(self, "enterContext") else tempfile.mkdtemp()
        )
        environment = (
            ENVIRONMENT
            | {_serve.COOKIE[0]: _serve.COOKIE[1], "PLUGIN_UNIX_SOCKET_DIR": folder, _serve.ENV_WATCH: "stdin"}
            | environment
        )
        process = subprocess.Popen(
            [sys.executable, HERE / "toy.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.addCleanup(process.__exit__, None, None, None)
        self.addCleanup(process.kill)
        line = process.stdout.readline().strip().split("|")
        self.assertEqual((line[:3], line[4], os.path.dirname(line[3])), (["1", "2", "unix"], "grpc", folder))
        return process, line

    def channel(self, line, key, certificate):
        import ssl

        der = base64.b64decode(line[5] + "=" * (-len(line[5]) % 4))
        credentials = grpc.ssl_channel_credentials(ssl.DER_cert_to_PEM_cert(der).encode(), key, certificate)
        channel = grpc.secure_channel("unix:" + line[3], credentials, [("grpc.ssl_target_name_override", "localhost")])
        self.addCleanup(channel.close)
        return channel

    def test_only_the_host_is_served_and_it_can_end_the_plugin(self):
        key, certificate, _ = _certificate.make()
        process, line = self.start(PLUGIN_CLIENT_CERT=certificate.decode())
        foreign_key, foreign_certificate, _ = _certificate.make()
        for channel in (self.channel(line, foreign_key, foreign_certificate), grpc.insecure_channel("unix:" + line[3])):
            with self.assertRaises(grpc.RpcError) as caught:
                channel.unary_unary("/origami.plugin.v1.BaseService/Info")(b"", timeout=5)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)
        host = self.channel(line, key, certificate)
        info = _wire.value(host.unary_unary("/origami.plugin.v1.BaseService/Info")(b"", timeout=5))
        self.assertEqual(info["name"], "toy")
        self.assertEqual(host.unary_unary("/grpc.health.v1.Health/Check")(b"\x0a\x06plugin", timeout=5), b"\x08\x01")
        self.assertEqual(host.unary_unary("/plugin.GRPCController/Shutdown")(b"", timeout=5), b"")
        self.assertEqual(process.wait(5), 0)

    def test_the_end_of_its_parent_ends_it_under_any_host(self):
        environment = ENVIRONMENT | {_serve.COOKIE[0]: _serve.COOKIE[1]}
        shell = subprocess.Popen(
            ["sh", "-c", '"$0" "$1" & read line', sys.executable, HERE / "toy.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.addCleanup(shell.__exit__, None, None, None)
        self.assertIn("|grpc", shell.stdout.readline())
        shell.kill()
        # The output ends when no process holds it, and the plugin holds it while it lives.
        self.assertEqual(shell.stdout.read(), "")


if __name__ == "__main__":
    unittest.main()
