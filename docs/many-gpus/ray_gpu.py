"""A GPU of a Ray cluster, for `origami tune --remote 'python3 ray_gpu.py cuda'`: an actor runs `origami lend cuda` on a
node with a free GPU, and this program passes bytes on between it and its own standard streams. Where no GPU is free, it
waits for one."""

import argparse
import json
import os
import subprocess
import sys
import threading

import ray

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("executor", help="the executor plugin, as in cuda")
parser.add_argument("--address", default="auto", help="the cluster's, as ray.init takes it")
parser.add_argument("--resources", type=json.loads, default={}, help='as of actors, in JSON: {"accelerator_type:H100": 0.001}')
args = parser.parse_args()


class Lender:
    def __init__(self, executor):
        beside = os.path.dirname(sys.executable)  # where a wheel puts the command
        path = os.environ["PATH"] + os.pathsep + beside
        self.process = subprocess.Popen(["origami", "lend", executor], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        bufsize=0, env={**os.environ, "PATH": path})

    def write(self, data):
        self.process.stdin.write(data)

    def read(self):
        return os.read(self.process.stdout.fileno(), 1 << 20)  # nothing at its end


out = os.dup(1)
os.dup2(2, 1)  # what Ray prints is no part of the connection
ray.init(address=args.address, logging_level="error")
kind = ray.remote(num_gpus=1, num_cpus=0, resources=args.resources or None, max_concurrency=2)(Lender)
lender = kind.remote(args.executor)


def down():
    try:
        while data := ray.get(lender.read.remote()):
            while data:
                data = data[os.write(out, data):]
    finally:
        os._exit(1)  # the GPU, its node or the cluster is gone; origami starts this program again


threading.Thread(target=down, daemon=True).start()
while data := os.read(0, 1 << 20):
    ray.get(lender.write.remote(data))
ray.kill(lender)
os._exit(0)
