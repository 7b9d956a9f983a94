"""The process of an executor plugin: go-plugin's handshake, the gRPC services, and ending when the host does.

go-plugin's client asks a server for its broker and standard streams too, and goes on without when they are not
implemented, as here: an executor needs no broker, and its standard error is a pipe.
"""

from __future__ import annotations

import base64
import concurrent.futures
import dataclasses
import datetime
import json
import logging
import os
import secrets
import signal
import sys
import tempfile
import threading
import time
from typing import NamedTuple

import grpc

from . import _certificate, _wire
from ._types import DiagnosticError, Executor, InputError, Kernel, Provider

_log = logging.getLogger("origami")

# The counterparts of package sdk/wire.
COOKIE = ("ORIGAMI_PLUGIN", "6d9b3c5e1f8247a0b4e2c7d15a90f863")
PROTOCOL_VERSION = 2
# The keys of a problem that an executor without whole_problems heeds.
PLAIN_PROBLEM = {"m", "n", "k", "batch", "trans_a", "trans_b", "dtype"}
MAX_REQUEST, MAX_ANSWER = 4 << 20, 32 << 20  # bytes; the requests to an executor are short
ENV_WATCH, ENV_LOG_LEVEL = "ORIGAMI_PLUGIN_WATCH", "ORIGAMI_PLUGIN_LOG_LEVEL"

CORE_PROTOCOL = 1  # go-plugin's own
# Concurrent calls. A host compiles a few kernels ahead of the measured one; more calls wait.
THREADS = 64
# How long the calls in progress have when the host asks the plugin to end; the host kills it after two seconds.
GRACE_SECONDS = 0.2
# The limit of an error text in characters. It is sent in a trailer, whose size HTTP/2 limits.
LONGEST_TEXT = 2000


def main(provider: Provider) -> None:
    argument = sys.argv[1] if len(sys.argv) > 1 else ""
    if argument == "describe":
        print(json.dumps(describe(provider)))
        sys.exit(0)
    if os.environ.get(COOKIE[0]) == COOKIE[1]:
        serve(provider)
    manifest, path = provider.manifest, sys.argv[0]
    print(f"""{os.path.basename(path)}: this is the plugin {manifest.name} {manifest.version} of origami, \
which starts it when it needs it
  {path} describe              prints what it provides, as JSON
  origami plugin trust {path}   lets origami use it""", file=sys.stderr)
    sys.exit(2)


def describe(provider: Provider) -> dict:
    """The plugin's answer to "describe"."""
    manifest = dataclasses.asdict(provider.manifest)
    info = dict(manifest)
    if hasattr(provider, "health"):
        try:
            provider.health()
        except DiagnosticError as error:
            info["failing"] = str(error) or "it gives no reason"
    return {"info": info, "protocols": [PROTOCOL_VERSION], "executor": manifest}


def serve(provider: Provider) -> None:
    """Serves the provider to the host that started this process. It does not return."""
    handshake = _take_streams()
    _log_as_json()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the host handles a Ctrl-C at the terminal
    stop = threading.Event()

    def shutdown(request, context) -> bytes:
        stop.set()
        return b""

    pool = concurrent.futures.ThreadPoolExecutor(THREADS, thread_name_prefix="call")
    service = ExecutorService(provider)
    # Run, programs of the caller's, is for executors in Go. gRPC answers UNIMPLEMENTED, which the host understands.
    calls = ("Manifest", "Devices", "Compile", "Check", "Measure", "Release", "Environment")
    server = grpc.server(
        pool, options=[("grpc.max_receive_message_length", MAX_REQUEST), ("grpc.max_send_message_length", MAX_ANSWER)]
    )
    server.add_generic_rpc_handlers(
        [
            _handlers(
                "BaseService",
                {"Info": lambda request, context: describe(provider)["info"]},
            ),
            _handlers("ExecutorService", {name: getattr(service, name.lower()) for name in calls}),
            _go_plugin_handlers("plugin.GRPCController", "Shutdown", shutdown),
            # HealthCheckResponse with status = 1, which is SERVING.
            _go_plugin_handlers("grpc.health.v1.Health", "Check", lambda request, context: b"\x08\x01"),
        ]
    )
    path = tempfile.mktemp(prefix="plugin", dir=os.environ.get("PLUGIN_UNIX_SOCKET_DIR") or None)
    line = [CORE_PROTOCOL, PROTOCOL_VERSION, "unix", path, "grpc"]
    host = os.environ.get("PLUGIN_CLIENT_CERT")
    if host:  # mutual TLS: each side accepts only the certificate of the other
        key, certificate, der = _certificate.make()
        server.add_secure_port(
            "unix:" + path, grpc.ssl_server_credentials([(key, certificate)], host.encode(), require_client_auth=True)
        )
        line.append(base64.b64encode(der).rstrip(b"=").decode())
    else:
        server.add_insecure_port("unix:" + path)
    server.start()
    os.write(handshake, ("|".join(map(str, line)) + "\n").encode())
    stop.wait()
    server.stop(GRACE_SECONDS).wait()
    pool.shutdown()  # waits for the calls in progress
    service.end()
    _exit()


def _take_streams() -> int:
    """Reserves standard output for the handshake and standard input for the watch on the host. Output of the plugin and
    its libraries goes to standard error. Child processes get neither stream. Returns the descriptor for the
    handshake."""
    handshake, stdin = os.dup(1), os.dup(0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(2, 1)
    os.dup2(null, 0)
    os.close(null)
    sys.stdout = os.fdopen(os.dup(1), "w", buffering=1)
    threading.Thread(target=_exit_with_host, args=(stdin,), daemon=True).start()
    return handshake


def _exit_with_host(stdin: int) -> None:
    """Ends this process with the host; otherwise it would outlive a killed host. An origami host holds standard input
    open. Under any other host the parent's process id is watched."""
    if os.environ.get(ENV_WATCH) == "stdin":
        while os.read(stdin, 1 << 16):
            pass
    else:
        parent = os.getppid()
        while os.getppid() == parent:
            time.sleep(0.25)
    _log.debug("the host is gone")
    _exit()


def _exit() -> None:
    """Ends the process at once, without waiting for threads that may never end."""
    logging.shutdown()
    os._exit(0)


_LEVELS = {
    "trace": 5,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "off": logging.CRITICAL + 1,
}


class _HclogFormatter(logging.Formatter):
    """A line of JSON in the form of hashicorp/go-hclog. The host puts it into its log, at the level of the line."""

    def format(self, record: logging.LogRecord) -> str:
        level = [name for name, number in _LEVELS.items() if number <= max(record.levelno, 5)][-1]
        text = record.getMessage()
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return json.dumps(
            {
                "@level": "error" if level == "off" else level,
                "@message": text,
                "@module": record.name,
                "@timestamp": datetime.datetime.fromtimestamp(record.created, datetime.timezone.utc).isoformat(
                    timespec="microseconds"
                ),
            }
        )


def _log_as_json() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_HclogFormatter())
    level = _LEVELS.get(os.environ.get(ENV_LOG_LEVEL, "").lower(), logging.INFO)
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.captureWarnings(True)


class _Status(
    NamedTuple("Status", [("code", grpc.StatusCode), ("details", str), ("trailing_metadata", tuple)]), grpc.Status
):
    """An error with a detail."""


_CODES = {
    "KIND_INTERNAL": grpc.StatusCode.INTERNAL, "KIND_INPUT": grpc.StatusCode.INVALID_ARGUMENT,
    "KIND_PLUGIN": grpc.StatusCode.DATA_LOSS, "KIND_DEVICE": grpc.StatusCode.FAILED_PRECONDITION,
}


def _status(code: grpc.StatusCode, text: str, detail) -> _Status:
    text = text[:LONGEST_TEXT]
    return _Status(code, text, (("grpc-status-details-bin", _wire.status(code.value[0], text, detail)),))


class _KernelMissing(Exception):
    """The process does not have the kernel, or no longer has it."""


def _handlers(service: str, functions: dict) -> grpc.GenericRpcHandler:
    """Serves functions of JSON values as the methods of a service. An exception becomes a status with a Diagnostic."""

    def guarded(name, function):
        def call(request, context):
            try:
                answer = function(_wire.value(request), context)
                return b"" if answer is None else _wire.message(answer)
            except _KernelMissing:
                status = _status(grpc.StatusCode.NOT_FOUND, "RESOURCE_KERNEL", _wire.missing_kernel())
            except Exception as error:
                if not isinstance(error, DiagnosticError):
                    _log.exception("%s failed", name)
                detail, kind = _wire.diagnostic(error, LONGEST_TEXT)
                status = _status(_CODES[kind], str(error), detail)
            context.abort_with_status(status)

        return grpc.unary_unary_rpc_method_handler(call)

    handlers = {name: guarded(name, function) for name, function in functions.items()}
    return grpc.method_handlers_generic_handler(f"{_wire.PACKAGE}.{service}", handlers)


def _go_plugin_handlers(service: str, method: str, function) -> grpc.GenericRpcHandler:
    """Serves a method whose messages are not decoded."""
    return grpc.method_handlers_generic_handler(service, {method: grpc.unary_unary_rpc_method_handler(function)})


class _Held:
    """A kernel behind a number."""

    def __init__(self, kernel: Kernel):
        self.kernel, self.users, self.released = kernel, 0, False


class ExecutorService:
    """Serves an executor. The first call that needs the executor opens it. The counterpart in Go is
    sdk/wire/executor_server.go."""

    def __init__(self, provider: Provider):
        self._provider = provider
        self._opening = threading.Lock()
        self._open: Executor | None = None
        self._lock = threading.Lock()  # guards what follows
        self._kernels: dict[int, _Held] = {}
        # Handles count up from a random number, so that no handle of an earlier process is valid in this one.
        self._last = secrets.randbits(64)

    def _executor(self) -> Executor:
        """The executor, opened if necessary. A failure is not kept: the next call tries again."""
        with self._opening:
            if self._open is None:
                self._open = self._provider.open()
            return self._open

    def _use(self, number: int, function):
        """Calls a function with a kernel, which is not closed during the call."""
        with self._lock:
            held = self._kernels.get(number)
            if held is None:
                raise _KernelMissing
            held.users += 1
        try:
            return function(held.kernel)
        finally:
            with self._lock:
                held.users -= 1
                unused = held.released and not held.users
            if unused:
                held.kernel.close()

    def manifest(self, request, context):
        return dataclasses.asdict(self._provider.manifest)

    def devices(self, request, context):
        return [_wire.device(d) for d in self._executor().devices()]

    def environment(self, request, context):
        device = _wire.device_index(_wire.fields(request, device=int)["device"])
        return _wire.environment(self._executor().environment(device))

    def compile(self, request, context):
        q = _wire.fields(request, device=int, problem=dict, config=dict)
        problem, config = _wire.from_problem(q["problem"]), _wire.from_config(q["config"])
        plain = q["problem"].keys() <= PLAIN_PROBLEM and problem.dtype != "fp8_e5m2"
        if not plain and not getattr(self._provider, "whole_problems", False):
            raise InputError("the executor heeds no output types, leading dimensions, alignments, groups and fp8_e5m2")
        if config.axes and not getattr(self._provider, "named_axes", False):
            raise InputError("the executor heeds no named axes of configurations")
        kernel = self._executor().compile(_wire.device_index(q["device"]), problem, config)
        if not context.is_active():  # the caller does not wait any more
            kernel.close()
            return None
        resources = kernel.resources
        with self._lock:
            self._last = (self._last + 1) % (1 << 64) or 1
            self._kernels[self._last] = _Held(kernel)
            return _wire.compiled(self._last, resources)

    def check(self, request, context):
        number = _wire.fields(request, kernel=int)["kernel"]
        return _wire.numerics(self._use(number, lambda kernel: kernel.check()))

    def measure(self, request, context):
        number, options, runs = _wire.from_measure(request)
        return _wire.samples(self._use(number, lambda kernel: kernel.measure(options, runs)))

    def release(self, request, context):
        number = _wire.fields(request, kernel=int)["kernel"]
        with self._lock:
            held = self._kernels.pop(number, None)
            if held:
                held.released = True
            unused = held and not held.users
        if unused:
            held.kernel.close()

    def end(self) -> None:
        """Frees all kernels. No call is in progress."""
        try:
            for held in self._kernels.values():
                held.kernel.close()
            if self._open is not None:
                self._open.close()
        except Exception:
            _log.warning("it did not end well", exc_info=True)
