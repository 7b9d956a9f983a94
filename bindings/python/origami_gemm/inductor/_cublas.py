"""What cuBLAS takes for a product, by the model of vendors' libraries, beside the model that makes the picks."""

from __future__ import annotations

import logging
import weakref

from origami_gemm.errors import Error

log = logging.getLogger("origami_gemm.inductor")

# cuBLAS alone is taken, untimed, if it is predicted to take at most this share of the best pick's time. Of 831 products
# recorded on an H200, 258 are below. For these, cuBLAS takes 1.001 of the time of the fastest kernel recorded at the
# geometric mean, and 1.258 at worst. With 1 it would be 515 products, 1.005 and 1.775. Hardly any are predicted to
# be so much slower with cuBLAS that it need not be timed. (experiments/README.md#inductor-on-h200)
ALONE = 0.85

# The types that both were measured in.
TYPES = ("fp16", "bf16", "tf32", "fp8")

# Rows of sizes or bytes that 16 does not divide: there the pick and cuBLAS are both timed. With them, 818 products were
# known, and the worst taken untimed took 1.412 of the fastest kernel's time.
ALIGNED = 16

_libraries = weakref.WeakKeyDictionary()  # by the model of the picks


# What an answer of either model rests on where the two are compared: times of the device.
KNOWN = ("checked", "related")


def seconds(model, problem: dict, pick) -> float | None:
    """The time of cuBLAS for a problem (a dict of Model.rank's arguments), comparable with the time of the model's best
    pick. None outside of what both models were checked on."""
    if pick.evidence not in KNOWN or problem["dtype"] not in TYPES or problem.get("batch", 1) > 1:
        return None
    if problem["n"] % ALIGNED or problem["k"] % ALIGNED or min(problem.get("align") or (ALIGNED,)) < ALIGNED:
        return None
    # Along M, A has a layout that the library's model was not checked on. It takes as long as the other: of 24 recorded
    # products, the prediction is as right as elsewhere.
    if problem.get("trans_a"):
        if problem["m"] % ALIGNED:
            return None
        problem = problem | {"trans_a": False, "lda": 0}
    try:
        library = _library(model)
        answer = library.select(**problem) if library else None
    except Error as e:
        log.debug("the time of cuBLAS is not known: %s", e)
        return None
    return answer.seconds if answer and answer.evidence in KNOWN and answer.interval else None


def _library(model):
    """The model of the vendor's library on the device of another model, in the same timing. None if the other one has no
    times."""
    if model not in _libraries:
        known = not model.description.get("ranks_only")
        try:
            _libraries[model] = model.sibling("library") if known else None
        except Error as e:
            log.debug("no model of the vendor's library: %s", e)
            _libraries[model] = None
    return _libraries[model]
