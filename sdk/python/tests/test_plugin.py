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
    return _wire.message("Problem")(
        **{
            "m": 2,
            "n": 3,
            "k": 4,
            "batch": 1,
            "a_major": "MAJOR_K",
            "b_major": "MAJOR_N",
            "element_type": "ELEMENT_TYPE_BF16",
        }
        | change
    )


class Conversions(unittest.TestCase):
    def test_problem(self):
        self.assertEqual(_wire.from_problem(problem()), Problem(2, 3, 4, 1, "k", "n", "bf16"))
        self.assertEqual(
            str(_wire.from_problem(problem(a_major="MAJOR_M", b_major="MAJOR_K", batch=5))),
            "2x3x4 bf16 batch 5 trans-a trans-b",
        )

    def test_storage(self):
        plain = _wire.from_problem(problem(k=96))
        self.assertEqual((plain.output, plain.ld("a"), plain.ld("b"), plain.vector_bytes("a"), plain.vector_bytes("c")),
                         ("bf16", 96, 3, 16, 2))
        p = _wire.from_problem(
            problem(output_type="ELEMENT_TYPE_FP32", lda=6, ldb=4, ldc=3, align_a=2, align_b=16, b_major="MAJOR_K"))
        self.assertEqual(str(p), "2x3x4 bf16 out fp32 trans-b lda 6 align 2,16,16")
        self.assertEqual([p.stride(matrix) for matrix in "abc"], [12, 12, 6])
        self.assertEqual([p.vector_bytes(matrix) for matrix in "abc"], [2, 8, 4])
        for dtype, output in (("INT8", "int32"), ("FP8_E5M2", "fp16"), ("TF32", "fp32")):
            self.assertEqual(_wire.from_problem(problem(element_type="ELEMENT_TYPE_" + dtype)).output, output)

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
            ({"groups": [165, 0], "a_major": "MAJOR_M"}, "A with groups is contiguous along m"),
        ):
            with self.assertRaisesRegex(InputError, why):
                _wire.from_problem(problem(**({"m": 165} | change)))

    def test_refused_problems(self):
        for change, says in (
            ({"element_type": "ELEMENT_TYPE_INT32"}, "type of results only"),
            ({"output_type": "ELEMENT_TYPE_FP16"}, "no hardware multiplies bf16 operands into fp16 results"),
            ({"output_type": 99}, "unknown element type 99"),
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
            ({"m": 0}, "m is missing or zero"),
            ({"k": -1}, r"k is negative \(-1\)"),
            ({"batch": 0}, "batch is missing"),
            ({"element_type": 0}, "dtype is missing"),
            ({"a_major": "MAJOR_N"}, "a_major"),
            ({"b_major": "MAJOR_M"}, "b_major"),
            ({"a_major": 9}, "unknown major 9"),
            ({"element_type": 99}, "unknown element type 99"),
            ({"m": 1 << 20, "n": 1 << 20, "k": 1 << 20}, "overflows"),
            ({"m": (1 << 63) - 1}, "overflows"),
        ):
            with self.assertRaisesRegex(InputError, says):
                _wire.from_problem(problem(**change))

    def test_config(self):
        columns = dict(
            block_m=[128],
            block_n=[64],
            block_k=[32],
            group_m=[8],
            num_warps=[4],
            num_stages=[3],
            split_k=[1],
            kernels=["other", "triton"],
        )
        c = _wire.from_config(_wire.message("Configs")(**columns, kernel=[1]))
        self.assertEqual(c, Config("triton", 128, 64, 32, 8, 4, 3, 1))
        self.assertEqual(str(c), "128x64x32 w4 s3 g8")
        self.assertEqual(_wire.from_config(_wire.message("Configs")(**columns)).kernel, "other")
        self.assertEqual(str(Config("cublas")), "cublas")
        for change in ({"block_m": [0]}, {"split_k": [-1]}, {"num_stages": [4097]}, {"group_m": [-1]}):
            with self.assertRaisesRegex(InputError, "outside 1 to 4096"):
                _wire.from_config(_wire.message("Configs")(**columns | change))
        self.assertEqual(_wire.from_config(_wire.message("Configs")(**columns | {"group_m": [0]})).group_m, 0)
        for change in ({"kernel": [2]}, {"kernels": []}, {"block_m": []}, {"block_m": [1, 2]}, {"kernel": [0, 1]}):
            with self.assertRaisesRegex(InputError, "malformed request"):
                _wire.from_config(_wire.message("Configs")(**columns | change))

    def test_named_axes(self):
        numbers = dict.fromkeys(_wire._COLUMNS, [2])
        q = _wire.message("Configs")(kernels=["new"], **numbers)
        self.assertEqual(_wire.from_config(q).axes, ())
        q.axes.add(name="vector", values=["8"], index=[1])
        q.axes.add(name="cluster", values=["2x1", "4x1"], index=[2])
        q.axes.add(name="schedule", values=["ping"], index=[0])
        c = _wire.from_config(q)
        self.assertEqual(c.axes, (("cluster", "4x1"), ("vector", "8")))
        self.assertEqual((c.axis("cluster", "1x1"), c.axis("schedule", "simple")), ("4x1", "simple"))
        self.assertEqual(str(c), "2x2x2 w2 s2 g2 k2 cluster=4x1 vector=8")
        for column in ({"index": []}, {"index": [2]}, {"index": [1, 1]}):
            bad = _wire.message("Configs")(kernels=["new"], **numbers)
            bad.axes.add(name="cluster", values=["2x1"], **column)
            with self.assertRaises(InputError):
                _wire.from_config(bad)

    def test_executors_get_only_what_they_heed(self):
        config = _wire.message("Configs")(kernels=["new"], **dict.fromkeys(_wire._COLUMNS, [2]))
        axes = _wire.message("Configs")()
        axes.CopyFrom(config)
        axes.axes.add(name="cluster", values=["2x1"], index=[1])
        numbers = {"m": 8, "n": 8, "k": 8, "batch": 1, "a_major": "MAJOR_K", "b_major": "MAJOR_N"}
        plain = _wire.message("Problem")(element_type="ELEMENT_TYPE_FP16", **numbers)
        e5m2 = _wire.message("Problem")(element_type="ELEMENT_TYPE_FP8_E5M2", **numbers)
        padded = _wire.message("Problem")(element_type="ELEMENT_TYPE_FP16", lda=16, **numbers)

        class Reached(Exception):
            pass

        class Plain:
            manifest = Manifest("x", "1")

            def open(self):
                raise Reached

        def compile(problem, config, **knows):
            provider = Plain()
            vars(provider).update(knows)
            request = _wire.message("CompileRequest")(problem=problem, config=config)
            _serve.ExecutorService(provider).compile(request, None)

        for problem, c, knows in (
            (plain, config, {}), (plain, axes, {"named_axes": True}), (padded, config, {"whole_problems": True}),
            (e5m2, config, {"whole_problems": True}),
        ):
            with self.assertRaises(Reached):
                compile(problem, c, **knows)
        for problem, c, heeds in ((plain, axes, "named axes"), (padded, config, "leading"), (e5m2, config, "fp8_e5m2")):
            with self.assertRaisesRegex(InputError, heeds):
                compile(problem, c)

    def test_measure(self):
        request = _wire.message("MeasureRequest")
        self.assertEqual(
            _wire.from_measure(request(kernel=1, warm_l2=True, input="x", warmup=2, runs=3)),
            (MeasureOptions(True, "x", 2), 3),
        )
        for bad in ({"runs": 0}, {"runs": _wire.MAX_RUNS + 1}, {"runs": 1, "warmup": -1}):
            with self.assertRaisesRegex(InputError, "malformed request"):
                _wire.from_measure(request(**bad))

    def test_text_that_is_no_unicode(self):
        device = _wire.device(types.SimpleNamespace(name="a\udc80b", arch="x", attributes={}, kernels=[], libraries=[]))
        self.assertEqual(json.loads(_wire.to_json(device).json)["name"], "a?b")

    def test_status(self):
        from google.protobuf import any_pb2

        detail, _ = _wire.to_diagnostic(InputError("w" * 300, where="here", fix="fix"))
        raw = _wire.status(3, "ä", detail)
        self.assertEqual(raw[:6], b"\x08\x03\x12\x02\xc3\xa4")
        self.assertEqual(raw[6], 0x1A)
        length = raw[7] & 0x7F | raw[8] << 7
        packed = any_pb2.Any.FromString(raw[9:])
        self.assertEqual(len(raw) - 9, length)
        back = _wire.message("Diagnostic")()
        self.assertTrue(packed.Unpack(back))
        self.assertEqual((back.what, back.where, back.fix), ("w" * 300, "here", "fix"))


class Service(unittest.TestCase):
    """The service without gRPC around it."""

    def setUp(self):
        self.service = _serve.ExecutorService(toy.Provider())
        self.context = unittest.mock.Mock()
        self.closed = []
        self.patch = unittest.mock.patch.object(toy.Kernel, "close", lambda kernel: self.closed.append(kernel))
        self.patch.start()
        self.addCleanup(self.patch.stop)

    def compile(self, stages=2):
        config = _wire.message("Configs")(
            block_m=[64],
            block_n=[64],
            block_k=[64],
            group_m=[8],
            num_warps=[4],
            num_stages=[stages],
            split_k=[1],
            kernels=["toy"],
        )
        return self.service.compile(
            _wire.message("CompileRequest")(problem=problem(), config=config), self.context
        ).kernel

    def release(self, number):
        self.service.release(_wire.message("ReleaseRequest")(kernel=number), self.context)

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
        self.assertEqual(self.compile(), 0)
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
        self.assertEqual(len(json.loads(service.devices(None, None).json)), 1)


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
        info = _wire.message("Json").FromString(host.unary_unary("/origami.plugin.v1.BaseService/Info")(b"", timeout=5))
        self.assertEqual(json.loads(info.json)["name"], "toy")
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
