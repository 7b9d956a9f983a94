"""docs/many-gpus/tune.sbatch under Slurm on this machine: munge, slurmctld and slurmd, which Debian has,
run as this user in a folder, with two GPUs that take recorded times (replay.py). And docs/many-gpus/tune-job.yaml, held
against the schema of Kubernetes. They take minutes: `make cluster-test` runs them, and has what they need but Slurm."""

import contextlib
import getpass
import json
import os
import pathlib
import shlex
import shutil
import signal
import socket
import subprocess
import time
import unittest

from tests.test_ray import ALL, ARGUMENTS, CHECKOUT, KEYS, World, processes, read

PARTS = 4
PAGES = CHECKOUT / "docs" / "many-gpus"
DAEMONS = ("munged", "slurmctld", "slurmd")


def setUpModule():
    if not ALL:
        raise unittest.SkipTest("it takes minutes (make cluster-test)")
    os.environ["PATH"] += ":/usr/sbin"  # where the daemons are
    missing = [name for name in (*DAEMONS, "sbatch") if not shutil.which(name)]
    assert not missing, f"there is no {missing[0]}: apt-get install munge slurmctld slurmd slurm-client"
    global WORLD
    WORLD = World(pace=0.02)
    unittest.addModuleCleanup(WORLD.close)


def run(*command):
    done = subprocess.run(command, env=WORLD.env, cwd=WORLD.folder, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def slurm(folder):
    """A cluster of this machine, which WORLD.env names."""
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    key = folder / "munge.key-file"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    host = socket.gethostname().split(".")[0]
    (folder / "slurm.conf").write_text(f"""
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
SlurmUser={getpass.getuser()}
SlurmdUser={getpass.getuser()}
AuthInfo=socket={folder}/munge.socket,cred_expire=1
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SlurmdParameters=config_overrides
KillWait=1
MpiDefault=none
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory=1000 Gres=gpu:2
PartitionName=all Nodes={host} Default=YES
""")
    (folder / "gres.conf").write_text("AutoDetect=off\nName=gpu File=/dev/null\nName=gpu File=/dev/zero\n")
    WORLD.env["SLURM_CONF"] = str(folder / "slurm.conf")
    munge = [f"--{name}={folder}/munge.{name}" for name in ("socket", "key-file", "pid-file", "seed-file", "log-file")]
    with open(folder / "daemons.log", "w") as log, contextlib.ExitStack() as stack:
        for name, flags in zip(DAEMONS, (["--foreground", "--force", *munge], ["-D"], ["-D"])):
            daemon = subprocess.Popen([name, *flags], env=WORLD.env, stdout=log, stderr=log)
            stack.callback(daemon.wait, 30)
            stack.callback(daemon.terminate)
            if name == "munged":
                wait((folder / "munge.socket").exists, name, seen=(folder / "daemons.log").read_text)
        wait(lambda: "idle" in subprocess.run(["sinfo", "-h"], env=WORLD.env, capture_output=True, text=True).stdout,
             "a node is idle", seen=(folder / "daemons.log").read_text)
        yield


def wait(happened, what, seconds=120, seen=lambda: ""):
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s {seen()}"
        time.sleep(0.05)


def states(job):
    """The state of each task of an array."""
    out = run("squeue", "--array", "--noheader", "--states=all", f"--jobs={job}", "--format=%K %T")
    return {int(task): state for task, state in map(str.split, out.splitlines())}


class Job(unittest.TestCase):
    def test_tasks_that_are_cancelled_killed_or_preempted_go_on(self):
        alone, folder = WORLD.records("alone"), WORLD.records("slurm")
        run("origami", "tune", WORLD.plan, *ARGUMENTS, "--records", alone)
        undisturbed = read(alone)
        self.assertEqual(len(undisturbed), KEYS)
        script = (PAGES / "tune.sbatch").read_text().replace("16", str(PARTS))
        command = shlex.join(["origami", "tune", str(WORLD.plan), *ARGUMENTS, "--records", str(folder)])
        (WORLD.folder / "job.sh").write_text(script[:script.index("exec")] + f"exec {command} --shard auto/{PARTS}\n")
        with slurm(WORLD.folder / "cluster"):
            job = run("sbatch", "--parsable", "job.sh").strip()
            self.assertEqual(len(states(job)), PARTS)
            ends = {
                1: lambda: run("scancel", f"{job}_1"),
                2: lambda: None,  # scontrol alone, as another job that takes its place
                3: lambda: os.kill(self.tuning(3), signal.SIGKILL),
            }

            def now():
                return states(job)

            def output(task):
                return (WORLD.folder / f"origami-tune-{job}-{task}.log").read_text()

            for task, end in ends.items():
                log = folder / f"shard-{task}-of-{PARTS}" / "measurements.jsonl"
                wait(lambda: log.exists() and log.stat().st_size, f"task {task} measures", seen=now)
                end()
                wait(lambda: task == 2 or now()[task] in ("CANCELLED", "FAILED"), f"task {task} ends", seen=now)
                self.assertNotIn("is done", output(task), "it ended before it was disturbed")
                run("scontrol", "requeue", f"{job}_{task}")
            wait(lambda: set(now().values()) == {"COMPLETED"}, "all tasks are done", 300, seen=now)
        merged = json.loads(run("origami", "records", "merge", folder, "--json"))
        self.assertEqual((merged["folders"], merged["missing"], merged["set_apart"]), (PARTS, [], []))
        self.assertEqual(read(folder), undisturbed)
        for task in range(1, PARTS + 1):
            self.assertIn(f"part {task}/{PARTS} is done", output(task))

    def tuning(self, task):
        """The process of a task."""
        for pid in processes("origami", "tune"):
            if f"SLURM_ARRAY_TASK_ID={task}".encode() in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                return pid
        self.fail(f"no process of task {task}")

    def test_the_manifest_is_a_job_of_kubernetes(self):
        import kubernetes_validate
        import yaml

        manifest = yaml.safe_load((PAGES / "tune-job.yaml").read_text())
        kubernetes_validate.validate(manifest, "1.37", strict=True)
        manifest["spec"]["completion"] = 4
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(manifest, "1.37", strict=True)


if __name__ == "__main__":
    unittest.main()
