"""Two GPUs beside one: tune by brute force, then with faults of the second GPU. Results go to OUT as they come.

BIN has origami and origami-plugin-cuda (bin by default). LIMIT is the most seconds; what does not fit is left out.
RUNS names runs of five minutes of one GPU instead: one, two (--gpus all), ray-one and ray-two, which are compared with
those that WORK, a folder that is kept, has already. The package ray is on PYTHONPATH then."""
import collections, glob, gzip, json, os, re, shutil, signal, statistics, subprocess, sys, tempfile, time

BEGUN = time.time()
LEFT = lambda: float(os.environ.get("LIMIT", "540")) - (time.time() - BEGUN)
OUT = os.environ.get("OUT", ".")
BIN = os.path.abspath(os.environ.get("BIN", "bin"))
RUNS = [r for r in os.environ.get("RUNS", "").split(",") if r]
WORK = os.path.abspath(os.environ["WORK"]) if RUNS else tempfile.mkdtemp()
ORIGAMI = BIN + "/origami"
ARCH = os.environ.get("ARCH", "sm90@h100")
BIG, SMALL = int(os.environ.get("BIG", "19")), int(os.environ.get("SMALL", "10"))
FIVE = int(os.environ.get("FIVE", "35"))  # 88,200 measurements
result = {}

def note(**what):
    result.update(what)
    with open(OUT + "/result.json.part", "w") as f:
        json.dump(result, f, indent=1)
    os.replace(OUT + "/result.json.part", OUT + "/result.json")
    print(json.dumps(what)[:1800], flush=True)

def environment(name):
    """Fresh caches for each run: origami's, the driver's."""
    e = dict(os.environ, HOME=WORK + "/home", XDG_CONFIG_HOME=WORK + "/config", XDG_CACHE_HOME=f"{WORK}/{name}-cache",
             CUDA_CACHE_PATH=f"{WORK}/{name}-nv")
    e["PATH"] = BIN + ":" + e["PATH"]
    e["PYTHONPATH"] = os.path.abspath("bindings/python") + ":" + e.get("PYTHONPATH", "")
    for key in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "CUDA_CACHE_PATH"):
        os.makedirs(e[key], exist_ok=True)
    return e

def plan(n, step=128):
    path = f"{WORK}/plan-{n}-{step}.yaml"
    with open(path, "w") as f:
        f.write(f"""kernel: mma
problems:
  - dtype: fp16
    sets:
      - name: small
        fixed: {{split_k: 1}}
        steps:
          - fork: {{block_m: [32, 64, 128], block_n: [32, 64, 128], num_warps: [4, 8], block_k: [32, 64], num_stages: [3, 4]}}
        sizes:
          - range: [[{step}, {step}, {step * n}], [{step}, {step}, {step * n}], [512]]
""")
    return path

def children(pid):
    """The executors: (start time, pid)."""
    found = []
    for stat in glob.glob("/proc/[0-9]*/stat"):
        try:
            text = open(stat).read()
        except OSError:
            continue
        number, rest = int(text.split(" ", 1)[0]), text.rsplit(")", 1)[1].split()
        if int(rest[1]) == pid and rest[0] != "Z":
            found.append((int(rest[19]), number))
    return sorted(found)

def cpu(pid):
    """Seconds of CPU of a process and of its children that have ended."""
    try:
        f = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
        return {"own": (int(f[11]) + int(f[12])) / 100, "ended_children": (int(f[13]) + int(f[14])) / 100}
    except OSError:
        return None

def cluster(env):
    """Starts a Ray cluster of this machine, and returns its process. The package may lie in a folder without scripts."""
    command = [sys.executable, "-c", "from ray.scripts.scripts import main; main()"]
    begun = time.time()
    p = subprocess.Popen([*command, "start", "--head", "--port=6379", "--block", "--disable-usage-stats",
                          "--include-dashboard=false", *os.environ.get("RAY_FLAGS", "").split()],
                         env=env, stdout=subprocess.DEVNULL, start_new_session=True)
    while subprocess.run([*command, "status", "--address=127.0.0.1:6379"], env=env, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL).returncode and p.poll() is None and time.time() < begun + 60:
        time.sleep(0.1)
    note(cluster_s=round(time.time() - begun, 2), cluster=p.poll())
    return p

def tune(name, n, gpus, limit, fault=None, at=7.0, step=128, most=None):
    """most is how many GPUs of a Ray cluster measure, which is started before and stopped after."""
    folder = f"{WORK}/{name}"
    shutil.rmtree(folder, ignore_errors=True)
    command = [ORIGAMI, "tune", plan(n, step), "--arch", ARCH, "--strategy", "all", "--executor", "cuda", "--records", folder,
                "--output", f"{WORK}/{name}.json"] + (["--gpus", gpus] if gpus else [])
    if not most:
        return run(name, command, folder, limit, fault, at)
    c = cluster(environment(name))
    try:
        gpu = f"{sys.executable} {os.path.abspath("docs/many-gpus/ray_gpu.py")} cuda --address 127.0.0.1:6379"
        return run(name, command + ["--remote", gpu] * most, folder, limit, fault, at)
    finally:
        c.terminate()
        c.wait(30)

def run(name, command, folder, limit, fault, at):
    begun = time.time()
    with open(f"{OUT}/{name}.log", "w") as log:
        p = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment(name), start_new_session=True)
        extra, done, used = None, None, {}
        while p.poll() is None:
            now = time.time() - begun
            if now > limit or LEFT() < 0:
                os.killpg(p.pid, signal.SIGINT)
                try:
                    p.wait(20)
                except subprocess.TimeoutExpired:
                    os.killpg(p.pid, signal.SIGKILL)
                done = done or "stopped at the limit"
                break
            kids = children(p.pid)
            for _, kid in kids:
                used[kid] = cpu(kid)
            used["origami"] = cpu(p.pid)
            if fault and extra is None and now > at and len(kids) >= 2:
                extra = fault(kids[-1][1]) or True
            time.sleep(0.1)
        code = p.wait()
    took = time.time() - begun
    if isinstance(extra, subprocess.Popen):
        extra.kill()
    cubins = len(glob.glob(f"{WORK}/{name}-cache/origami/kernels/*/*.cubin"))
    note(**{name: dict(took_s=round(took, 2), code=code, note=done, cubins=cubins, cpu=used, **summary(folder))})
    return folder

def lines(folder):
    for path in sorted(glob.glob(folder + "/**/*.jsonl*", recursive=True)):
        with (gzip.open(path, "rt") if path.endswith(".gz") else open(path)) as f:
            for line in f:
                try:
                    yield json.loads(line)
                except ValueError:
                    pass

def key(m):
    return json.dumps([m["problem"], m.get("config"), m.get("library")], sort_keys=True)

def when(m):
    t = (m.get("environment") or {}).get("time")
    if not t:
        return None
    head, fraction = re.match(r"(.*?)(\.\d+)?Z", t).groups()
    return time.mktime(time.strptime(head, "%Y-%m-%dT%H:%M:%S")) + float(fraction or 0)

def summary(folder):
    counts, statuses, byGPU, checks, again = collections.Counter(), collections.Counter(), {}, {}, 0
    for m in lines(folder):
        if m["phase"] == "check":
            checks.setdefault(key(m), {}).setdefault(m.get("gpu", ""), []).append(m["median_seconds"])
            continue
        counts[key(m)] += 1
        statuses[m["status"]] += 1
        byGPU.setdefault(m.get("gpu", ""), []).append(m)
    # Where the time goes: from one measurement to the next on a GPU, by what is new there.
    where, rate = {}, {}
    for gpu, list_ in byGPU.items():
        seen, last, at = set(), None, None
        kinds = collections.defaultdict(list)
        ms = sorted((m for m in list_ if when(m)), key=when)
        for m in ms:
            c = {k: v for k, v in (m.get("config") or {}).items() if k != "group_m"}
            c = json.dumps([c, m.get("library")], sort_keys=True)
            p = json.dumps(m["problem"], sort_keys=True)
            if at is not None:
                kind = ("new kernel, " if c not in seen else "") + ("new size" if p != last else "same size")
                kinds[kind].append(when(m) - at)
            seen.add(c)
            last, at = p, when(m)
        where[gpu] = {k: dict(n=len(v), sum_s=round(sum(v), 2), median_ms=round(1e3 * statistics.median(v), 3))
                      for k, v in kinds.items()}
        if ms:
            first, last = when(ms[0]), when(ms[-1])
            counts_of = collections.Counter(int(when(m) - first) for m in ms)
            rate[gpu] = dict(first=first, last=last, per_second=[counts_of[s] for s in range(int(last - first) + 1)])
    known = [{g: [round(1e6 * min(t), 3), round(1e6 * statistics.median(t), 3), round(1e6 * max(t), 3), len(t)]
              for g, t in k.items()} for k in checks.values()]
    return dict(keys=len(counts), twice=sum(1 for v in counts.values() if v > 1), statuses=statuses,
                measured={g: len(v) for g, v in byGPU.items()}, where=where, rate=rate, known_us_min_median_max_n=known)

def load(folder):
    return {key(m): m for m in lines(folder) if m["phase"] == "sweep"}

def compare(name, a, b):
    a, b = load(a), load(b)
    both = [k for k in a if k in b and a[k]["status"] == b[k]["status"] == "ok"]
    ratios = sorted(b[k]["median_seconds"] / a[k]["median_seconds"] for k in both)
    best = lambda d: {p: min(v) for p, v in by(d).items()}
    def by(d):
        out = collections.defaultdict(list)
        for m in d.values():
            if m["status"] == "ok" and m.get("config"):
                out[json.dumps(m["problem"], sort_keys=True)].append((m["median_seconds"], json.dumps(m["config"], sort_keys=True)))
        return out
    wa, wb, alla = best(a), best(b), by(a)
    losses = []
    for p in wa:
        if p in wb:
            times = {c: t for t, c in alla[p]}
            losses.append(times.get(wb[p][1], float("inf")) / wa[p][0] - 1)
    q = lambda x: ratios[min(len(ratios) - 1, int(x * len(ratios)))] if ratios else None
    note(**{name: dict(only_first=len(set(a) - set(b)), only_second=len(set(b) - set(a)), both=len(both),
        other_status=sum(1 for k in a if k in b and a[k]["status"] != b[k]["status"]),
        ratio=dict(p01=q(.01), p05=q(.05), p25=q(.25), median=q(.5), p75=q(.75), p95=q(.95), p99=q(.99)),
        sizes=len(losses), same_winner=sum(1 for x in losses if x == 0), within_1=sum(1 for x in losses if x <= .01),
        within_2=sum(1 for x in losses if x <= .02), worst=max(losses, default=None))})

PROBE = r"""
import ctypes, sys, time, json
gpu, seconds = int(sys.argv[1]), float(sys.argv[2])
n = ctypes.CDLL("libnvidia-ml.so.1"); c = ctypes.CDLL("libcuda.so.1")
n.nvmlInit_v2(); h = ctypes.c_void_p(); n.nvmlDeviceGetHandleByIndex_v2(gpu, ctypes.byref(h))
c.cuInit(0); d = ctypes.c_int(); c.cuDeviceGet(ctypes.byref(d), gpu); ctx = ctypes.c_void_p()
c.cuDevicePrimaryCtxRetain(ctypes.byref(ctx), d); c.cuCtxSetCurrent(ctx)
v = ctypes.c_uint(); b = ctypes.c_uint64()
def clock(): return n.nvmlDeviceGetClockInfo(h, 1, ctypes.byref(v))
def power(): return n.nvmlDeviceGetPowerUsage(h, ctypes.byref(v))
def memory():
    r = c.cuMemAlloc_v2(ctypes.byref(b), ctypes.c_size_t(8 << 20)); return r or c.cuMemFree_v2(b)
out = {}
for f in (clock, power, memory):
    t, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        s = time.perf_counter(); r = f(); t.append(time.perf_counter() - s)
        if r: break
    t.sort(); out[f.__name__] = dict(n=len(t), code=r, median_us=round(1e6 * t[len(t) // 2], 1), p95_us=round(1e6 * t[int(.95 * len(t))], 1))
print(json.dumps(out))
"""

def probe():
    """What calls of the driver cost a process alone, and beside another that does the same with the other GPU."""
    start = lambda g: subprocess.Popen([sys.executable, "-c", PROBE, str(g), "1"], stdout=subprocess.PIPE, text=True)
    read = lambda p: json.loads(p.communicate(timeout=25)[0] or "null")
    alone = read(start(0))
    pair = [start(0), start(1)]
    note(driver_calls=dict(alone=alone, beside=[read(p) for p in pair]))

def kill(pid): os.kill(pid, signal.SIGKILL)
def hang(pid): os.kill(pid, signal.SIGSTOP)
def heavy(_pid):
    code = """
import torch
a = torch.randn(8192, 8192, device="cuda:1", dtype=torch.bfloat16)
while True:
    for _ in range(20): b = a @ a
    torch.cuda.synchronize()
"""
    return subprocess.Popen([sys.executable, "-c", code], env=dict(os.environ), stderr=subprocess.DEVNULL)

def guarded(part, *args, **more):
    try:
        return part(*args, **more)
    except Exception as e:  # the next part is worth its time all the same
        note(**{"error in " + getattr(part, "__name__", "part") + " " + str(args[:1]): repr(e)})

def table(names):
    """Writes every time to times.csv.gz: a line per size and kernel, per run its microseconds and the GPU's number."""
    runs = {n: load(f"{WORK}/{n}") for n in names if os.path.isdir(f"{WORK}/{n}")}
    gpus = {n: {g: i for i, g in enumerate(sorted({m.get("gpu", "") for m in r.values()}))} for n, r in runs.items()}
    axes = ["block_m", "block_n", "block_k", "num_warps", "num_stages"]
    with gzip.GzipFile(f"{OUT}/times.csv.gz", "wb", mtime=0) as f:
        f.write((",".join(["m", "n", "k", *axes] + [c for n in runs for c in (n + "_us", n + "_gpu")]) + "\n").encode())
        for k in sorted({k for r in runs.values() for k in r}):
            problem, config, library = json.loads(k)
            if not config:
                continue
            cells = [problem["m"], problem["n"], problem["k"], *(config.get(a, "") for a in axes)]
            for n, r in runs.items():
                ok = k in r and r[k]["status"] == "ok"
                cells += [f"{1e6 * r[k]['median_seconds']:.4g}", gpus[n][r[k].get("gpu", "")]] if ok else ["", ""]
            f.write((",".join(map(str, cells)) + "\n").encode())

def five_minutes():
    """Runs of five minutes of one GPU, and each against the first one."""
    how = {"one": (None, None), "two": ("all", None), "ray-one": (None, 1), "ray-two": (None, 2)}
    for name in RUNS:
        gpus, most = how[name]
        guarded(tune, name, FIVE, gpus, 420, step=64, most=most)
        if name != "one" and os.path.isdir(WORK + "/one"):
            guarded(compare, name + "_against_one", WORK + "/one", f"{WORK}/{name}")
    guarded(table, ["one", "two", "ray-one", "ray-two"])
    note(seconds=round(time.time() - BEGUN, 1))

def main():
    os.makedirs(WORK, exist_ok=True)
    subprocess.run([ORIGAMI, "plugin", "trust", BIN + "/origami-plugin-cuda"], env=environment("one"), check=True)
    note(host=dict(cores=os.cpu_count(), ptxas=shutil.which("ptxas") or os.path.exists("/usr/local/cuda/bin/ptxas"),
                   gpus=subprocess.run("nvidia-smi --query-gpu=name,driver_version,clocks.sm,power.limit,temperature.gpu"
                                       " --format=csv,noheader", shell=True, capture_output=True, text=True).stdout))
    global ARCH
    if "H200" in result["host"]["gpus"]:
        ARCH = "sm90@h200"
    if RUNS:
        return five_minutes()
    guarded(probe)
    one = guarded(tune, "one", BIG, None, 230)
    two = guarded(tune, "two", BIG, "all", 150)
    if one and two:
        guarded(compare, "two_against_one", one, two)
        note(speed=round(result["one"]["took_s"] / result["two"]["took_s"], 3))
    whole = guarded(tune, "small", SMALL, "all", 60)
    middle = 0.5 * result.get("small", {}).get("took_s", 20)
    for name, fault in (("killed", kill), ("hung", hang), ("throttled", heavy)):
        if LEFT() < 25:
            note(**{name: "no time left"})
            continue
        folder = guarded(tune, name, SMALL, "all", 100, fault, middle)
        if folder and whole:
            guarded(compare, name + "_against_small", whole, folder)
    if LEFT() > 70:  # the same again: what repeats
        again = guarded(tune, "two_again", BIG, "all", 150)
        if one and again:
            guarded(compare, "two_again_against_one", one, again)
        if two and again:
            guarded(compare, "two_again_against_two", two, again)  # noise, without a difference
    shutil.rmtree(WORK, ignore_errors=True)
    note(seconds=round(time.time() - BEGUN, 1))

main()
