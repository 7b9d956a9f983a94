"""Compiles in separate processes. Triton holds Python's global lock while it compiles, and a compiler crash ends its
process. The result arrives through Triton's cache on disk.

A process reads one job per line of JSON and answers each with a line. It ends with its input, so it does not outlive
the plugin.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import threading

from origami_gemm_plugin import Config, InputError, Problem

# In characters. The end of a compiler's log has the error, and the log can be long.
LONGEST_LOG = 1500


class Compilers:
    """A number of compiler processes, started on demand."""

    def __init__(self, capability: int, limit: int):
        self._capability = capability
        self._slots = threading.Semaphore(limit)
        self._lock = threading.Lock()
        self._idle: list[subprocess.Popen] = []
        self._all: list[subprocess.Popen] = []
        self._closed = False

    def build(self, problem: Problem, config: Config) -> str:
        """Puts the kernels of a configuration into Triton's cache, or returns why they do not compile. A crash is an
        InputError."""
        job = {
            "problem": dataclasses.asdict(problem),
            "config": dataclasses.asdict(config),
            "capability": self._capability,
        }
        with self._slots:
            worker = self._take()
            assert worker.stdin and worker.stdout
            try:
                worker.stdin.write(json.dumps(job) + "\n")
                worker.stdin.flush()
                answer = worker.stdout.readline()
            except BrokenPipeError:
                answer = ""
            if not answer:
                raise InputError(
                    f"the compiler crashed ({worker.wait()})", where="triton", fix="take another configuration"
                )
            with self._lock:
                self._idle.append(worker)
        return json.loads(answer)[-LONGEST_LOG:]

    def _take(self) -> subprocess.Popen:
        with self._lock:
            if self._closed:
                raise InputError("the executor is closed", where="triton")
            while self._idle:
                worker = self._idle.pop()
                if worker.poll() is None:
                    return worker
            root = pathlib.Path(__file__).parent.parent  # a folder, or the plugin's file, which is a zip archive
            worker = subprocess.Popen(
                [sys.executable, "-c", "from origami_triton import compilers; compilers.serve()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=os.environ | {"PYTHONPATH": os.pathsep.join([str(root), *sys.path])},
            )
            self._all.append(worker)
            return worker

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for worker in self._all:
                worker.kill()
            for worker in self._all:
                with worker:  # closes its pipes and waits
                    pass


def serve() -> None:
    """The main function of a compiler process."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the output of compilers is not an answer
    from . import kernel

    for line in sys.stdin:
        job, error = json.loads(line), ""
        try:
            problem, config = Problem(**job["problem"]), Config(**job["config"])
            for code in kernel.codes(problem, config):
                kernel.build(code, job["capability"])
        except Exception as failure:
            while failure.__cause__:  # an error in a function that a kernel calls is the cause of the call's error
                failure = failure.__cause__
            error = f"{type(failure).__name__}: {failure}"
        print(json.dumps(error), file=answers, flush=True)
