"""`origami tune` with the GPUs of a Ray cluster.

    python3 -m origami_gemm.ray tune sizes.yaml --arch sm90@h200 --executor cuda --records ./tuned --address auto

    from origami_gemm import ray
    picks = ray.tune("sizes.yaml", address="auto", arch="sm90@h200", executor="cuda", records="./tuned")

`origami tune` runs here. It chooses what is measured, and writes the folder. Ray starts `origami lend` in an actor for
each GPU, and passes the bytes between the two. So every node has the command `origami`, and an executor that is trusted.
A GPU that is lost is started again where Ray finds one, and GPUs of nodes that come later join. If this process ends,
the same command goes on. docs/many-gpus.md says more.
"""

import argparse
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

from origami_gemm.errors import Error

# How long GPUs that are free at the beginning are waited for, so that they are compared with each other. A node that is
# slower joins later.
TOGETHER = 30

# A GPU is given up when it was taken back so often in a row, each time within a minute, with longer pauses in between.
ATTEMPTS, LASTING = 5, 60


def tune(plan, address=None, accelerator_type=None, resources=None, gpus=None, **flags):
    """Tunes the sizes of a file, and returns what `origami tune --json` prints: a dict for each size, and a summary.

    address is that of the cluster, as ray.init takes it. accelerator_type and resources say which GPUs are used, as for
    actors of Ray, and gpus how many at most. flags are those of `origami tune`: arch, executor and records at least."""
    words = []
    for name, value in flags.items():
        flag = "--" + name.replace("_", "-")
        words += [flag] if value is True else [] if value in (None, False) else [flag, str(value)]
    code, out = _run([os.fspath(plan), *words, "--json"], address, accelerator_type, resources, gpus, subprocess.PIPE)
    if code:
        raise Error(f"origami tune ended with exit status {code}; it says why on standard error",
                    {2: "input", 3: "plugin", 4: "device"}.get(code, "internal"))
    return [json.loads(line) for line in out.splitlines()]


def _run(words, address, accelerator_type, resources, gpus, stdout=None):
    """Runs `origami tune` with what Ray lends. Returns its exit status and standard output."""
    try:
        import ray
    except ImportError:
        raise Error("tuning over Ray needs the package ray; pip install ray") from None
    if not os.access(_origami(), os.X_OK):
        raise Error("the command origami is not on the PATH; install origami-gemm here and on every node", "device")
    needed = dict(resources or {})
    if accelerator_type:
        needed["accelerator_type:" + accelerator_type] = 0.001
    with tempfile.TemporaryDirectory() as folder:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(os.path.join(folder, "lent"))
        listener.listen()
        # It reads its file while Ray starts.
        head = subprocess.Popen([_origami(), "tune", *words, "--lent", listener.getsockname()], stdout=stdout)
        out = []
        reader = threading.Thread(target=lambda: out.append(head.stdout.read() if stdout else b""))
        reader.start()
        mine = not ray.is_initialized()
        try:
            if mine:
                local = {} if address or os.environ.get("RAY_ADDRESS") else {"include_dashboard": False}
                ray.init(address=address, logging_level="warning", **local)
            _Cluster(ray, head, listener, needed, gpus).serve()
        except KeyboardInterrupt:
            pass  # of the whole group: `origami tune` says what it has kept
        finally:
            listener.close()
            try:
                head.wait(30 if sys.exc_info()[0] is None else 5)
            except subprocess.TimeoutExpired:
                head.terminate()
            reader.join()
            if mine:
                ray.shutdown()
        return head.wait(), out[0]


class _Lender:
    """An actor: `origami lend` with the GPU that Ray gave it. It travels to nodes that need not have this package."""

    def start(self):
        import ray

        with contextlib.suppress(OSError):  # only root may
            os.setpriority(os.PRIO_PROCESS, 0, 0)  # Ray's workers are nice, and what is measured would wait for others
        ids = ray.get_runtime_context().get_accelerator_ids()["GPU"]
        name = ray.util.get_node_ip_address() + "/" + ids[0]
        self.process = subprocess.Popen([_origami(), "lend", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)

    def write(self, data):
        self.process.stdin.write(data)

    def read(self):
        return os.read(self.process.stdout.fileno(), 1 << 20)  # nothing at its end


def _origami():
    """The command: that on the PATH, or that of the wheel beside this Python."""
    return shutil.which("origami") or os.path.join(os.path.dirname(sys.executable), "origami")


class _Slot:
    """A GPU that is, or may be, lent."""

    def __init__(self):
        self.actor = self.starting = None
        self.attempts, self.next = 0, 0.0
        self.lent = None  # a thread, while it is
        self.begun = 0.0


class _Cluster:
    def __init__(self, ray, head, listener, needed, gpus):
        # The class travels with its text: nodes need not have this package.
        ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
        self.ray, self.head, self.listener, self.needed, self.most = ray, head, listener, needed, gpus or sys.maxsize
        self.actors = ray.remote(num_gpus=1, num_cpus=0, resources=needed or None, max_concurrency=2)(_Lender)
        self.slots = []

    def serve(self):
        """Lends GPUs until `origami tune` ends."""
        free = int(self.ray.available_resources().get("GPU", 0))  # before the actors take them
        self.grow()
        free, deadline, first = min(free, len(self.slots)), time.monotonic() + TOGETHER, []
        while self.head.poll() is None and len(first) < free and time.monotonic() < deadline:
            first = self.ready(0.1)
        for i, slot in enumerate(first):
            self.lend(slot, more=len(first) - 1 - i)
        while self.head.poll() is None:
            self.grow()
            for slot in self.ready(0.5):
                self.lend(slot, more=0)
            if self.slots and all(s.attempts >= ATTEMPTS and not s.lent for s in self.slots):
                return  # and so nobody lends
        for slot in self.slots:
            self.take_back(slot)

    def grow(self):
        """Starts an actor for each GPU of the cluster that has none. Ray places it when a GPU is free."""
        for slot in self.slots:
            if slot.lent and not slot.lent.is_alive():
                self.take_back(slot)
                slot.attempts = 1 if time.monotonic() - slot.begun > LASTING else slot.attempts + 1
                slot.next = time.monotonic() + 2 ** (slot.attempts - 1)
        there = sum(n["Resources"].get("GPU", 0) for n in self.ray.nodes()
                    if n["Alive"] and all(r in n["Resources"] for r in self.needed))
        while len(self.slots) < min(there, self.most):
            self.slots.append(_Slot())
        for slot in self.slots:
            if not slot.actor and slot.attempts < ATTEMPTS and time.monotonic() >= slot.next:
                slot.actor = self.actors.remote()
                slot.starting = slot.actor.start.remote()

    def ready(self, seconds):
        """The GPUs that may be lent now."""
        waiting = {s.starting: s for s in self.slots if s.starting and not s.lent}
        if not waiting:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.head.wait(seconds)
            return []
        done, _ = self.ray.wait(list(waiting), num_returns=len(waiting), timeout=seconds)
        return [waiting[d] for d in done if self.started(waiting[d])]

    def started(self, slot):
        try:
            self.ray.get(slot.starting)
            return True
        except self.ray.exceptions.RayError as e:
            print(f"a GPU of the cluster is not used: {str(e).strip().splitlines()[-1]}", file=sys.stderr)
            self.take_back(slot)
            slot.attempts += 1
            slot.next = time.monotonic() + 2 ** slot.attempts
            return False

    def lend(self, slot, more):
        slot.begun, slot.starting = time.monotonic(), None
        accepted = threading.Event()
        slot.lent = threading.Thread(target=self.pass_on, args=(slot.actor, more, accepted), daemon=True)
        slot.lent.start()
        if more:
            accepted.wait(TOGETHER)  # `origami tune` takes them in this order

    def take_back(self, slot):
        if slot.actor:
            self.ray.kill(slot.actor)
        slot.actor = slot.starting = slot.lent = None

    def pass_on(self, actor, more, accepted):
        """Passes bytes on between `origami tune` and `origami lend`, until one of them ends."""
        try:
            conn, _ = self.listener.accept()
        except OSError:
            return
        accepted.set()

        def down():
            try:
                conn.sendall(b'{"more":%d}\n' % more)
                while data := self.ray.get(actor.read.remote()):
                    conn.sendall(data)
            except (OSError, self.ray.exceptions.RayError):
                pass  # either end is gone, which the other one learns now
            close(conn)

        back = threading.Thread(target=down, daemon=True)
        back.start()
        try:
            while data := conn.recv(1 << 20):
                self.ray.get(actor.write.remote(data))
        except (OSError, self.ray.exceptions.RayError):
            pass
        close(conn)
        self.ray.kill(actor)  # and so what is read from it ends
        back.join()


def close(conn):
    with contextlib.suppress(OSError):
        conn.shutdown(socket.SHUT_RDWR)
    conn.close()


def main():
    parser = argparse.ArgumentParser(
        prog="python3 -m origami_gemm.ray", usage="%(prog)s tune FILE --arch ARCH --executor NAME [flags]", allow_abbrev=False,
        description="Tune with the GPUs of a Ray cluster. All other flags are those of `origami tune`.")
    parser.add_argument("command", choices=["tune"], help=argparse.SUPPRESS)
    parser.add_argument("--address", help="the cluster's, as ray.init takes it; otherwise RAY_ADDRESS, or Ray is started here")
    parser.add_argument("--accelerator-type", metavar="KIND", help="only GPUs that Ray calls so, as in H100")
    parser.add_argument("--resources", metavar="JSON", type=json.loads, help="only nodes with these, as of actors")
    parser.add_argument("--most-gpus", metavar="N", type=int, help="at most so many GPUs")
    known, words = parser.parse_known_args()
    try:
        code, _ = _run(words, known.address, known.accelerator_type, known.resources, known.most_gpus)
    except Error as e:
        print(f"origami: {e}", file=sys.stderr)
        code = 4 if e.kind == "device" else 2
    sys.exit(code)


if __name__ == "__main__":
    main()
