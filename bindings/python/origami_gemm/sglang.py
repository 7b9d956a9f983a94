"""The times of a server's steps for SGLang Simulator (sglang-project/sglang, tools/sglang_simulator; its predictors are
subclasses of sglang_simulator.time_predictor.base.InferTimePredictor). Needs the command `origami`, and no GPU.

    predictor = TimePredictor(model, accelerator, config, config_json="config.json", arch="h200")
    predictor.predict_infer_time(batch)  # seconds
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess

from origami_gemm.errors import Error

# The simulator appends the board to the name of a GPU. origami does not.
BOARDS = ("_sxm", "_server")
SERVERS = {"sglang": "sglang", "vllm": "vllm", "trtllm": "trtllm", "tensorrt_llm": "trtllm"}


class TimePredictor:
    """model, hw and config are the simulator's ModelInfo, AcceleratorInfo and SchedulerConfig. config_json is the model's
    file, and is looked for in the folder model.model_path otherwise. arch is a device as in `--arch`, hw.name by default.
    flags are more flags of `origami model`, such as weights="fp8"."""

    def __init__(self, model, hw, config, *args, config_json=None, arch=None, origami=None, **flags):
        self.model, self.hw, self.config = model, hw, config
        name = arch or hw.name.lower()
        for board in BOARDS:
            name = name.removesuffix(board)
        config_json = config_json or os.path.join(str(model.model_path), "config.json")
        command = origami or os.environ.get("ORIGAMI") or shutil.which("origami")
        if not command:
            raise Error("there is no command origami; put it into PATH, or set ORIGAMI to its path", "device")
        given = {"tp": getattr(config, "tp_size", 1), "ep": getattr(config, "ep_size", 1), "dp": getattr(config, "dp_size", 1),
                 "server": SERVERS.get(getattr(config, "backend_name", "sglang"), "sglang"), **flags}
        line = [command, "--in-process", "model", config_json, "--arch", name, "--passes"]
        line += [f"--{key.replace('_', '-')}={value}" for key, value in given.items() if value]
        self._process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.interval([[1, 1]])  # what cannot be answered is said here

    def predict_infer_time(self, batch):
        """Returns the seconds of a step of a ScheduleBatch."""
        return self._ask(batch.request_info())["seconds"]

    def interval(self, requests):
        """Returns the ends of the interval of a step, in seconds. requests are pairs of new tokens and tokens before."""
        return tuple(self._ask(requests)["interval_seconds"])

    def _ask(self, requests):
        line = ""
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._process.stdin.write(json.dumps([[int(v) for v in r] for r in requests]) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        if not line:
            text = "" if self._process.stderr.closed else self._process.stderr.read()
            self.close()
            raise Error(text.strip() or "the command origami has ended", "input")
        return json.loads(line)

    def close(self):
        """Ends the command."""
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        self._process.wait()
