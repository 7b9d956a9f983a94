"""What experiments on a GPU share: CUDA graphs, their times by device events, and results that are kept as they come."""

import json
import math
import os
import pathlib
import statistics

import torch

OUT = pathlib.Path(os.environ.get("OUT", "."))


def about():
    """The environment, for the record."""
    return {"device": torch.cuda.get_device_name(0), "torch": torch.__version__, "cuda": torch.version.cuda}


def save(name, value):
    (OUT / f"{name}.json").write_text(json.dumps(value, indent=1) + "\n")


def geomean(ratios):
    return math.exp(statistics.fmean(map(math.log, ratios)))


def graph(calls):
    """A CUDA graph of calls. Operands that differ from call to call make what they read cold."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for call in (calls * 3)[:3]:
            call()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        for call in calls:
            call()
    return g


def seconds(run, times=1):
    """Seconds of a run, by events around some of them."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(times):
        run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / times / 1e3


def in_turns(runs, rounds, times=1):
    """The median seconds of each of the runs, which take turns, so that the clock's wander meets all."""
    found = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            found[name].append(seconds(run, times))
    return {name: statistics.median(t) for name, t in found.items()}
