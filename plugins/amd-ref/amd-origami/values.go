package amdorigami

import "github.com/origami-gemm/origami/core/arch"

// evaluation computes the terms of one configuration after another. Its stages are nested: tileStage depends on block_m
// and block_n, launchStage also on the number of workgroups, stepStage also on block_k. A stage reads only the problem
// and the stages before it. An unchanged stage is therefore reused, and the order of configurations changes no bit.
type evaluation struct {
	on     *architecture
	splitK uint64
	problem
	tileStage
	launchStage
	stepStage
	// depths caches the values that depend on block_k alone. The index is the number of trailing zero bits of block_k.
	// slot is the current index; a pointer instead would move the evaluation to the heap.
	depths [depthSlots]depth
	slot   int
}

const depthSlots = 16

// current returns the values of the current block_k.
func (e *evaluation) current() *depth { return &e.depths[e.slot%depthSlots] }

// tileStage holds the values that depend on block_m and block_n.
type tileStage struct {
	bm, bn      uint64
	gm, gn      uint64  // tiles along M and N
	grid, tiles uint64  // gm·gn, and gm·gn·batch
	area        float64 // of the padded output
	compute     uint64  // cycles of the matrix instructions per step of mi_k along K
	storeRows   uint64  // rows of C that a tile's store touches
	loadRounded uint64  // elements loaded per element of rounded depth
	loadPlain   uint64  // elements loaded per element of depth, if the other dimension is rounded
	tileRefused bool    // a rule that does not depend on block_k rejects the tile
	tileSkinny  bool    // the hint rule rejects the tile if block_k is a multiple of 128 bytes
}

// launchStage holds the values that also depend on the number of workgroups.
type launchStage struct {
	launch
	active       float64
	rounds       float64 // timesteps
	l2Rate       float64 // L2 bytes per cycle with this many active compute units
	mallRate     float64
	hbmRate      float64
	bwLimited    float64 // fraction of the bandwidth of MALL and HBM
	l2M, l2N     uint64  // super-tile of one die, before its L2 limits it
	mallM, mallN uint64  // super-tile of the whole device
	occupied     uint64  // workgroups per compute unit
	discount     float64
	concurrent   float64 // batch entries at once
	store        float64
	reduction    float64

	// The hit rates are the same for every block_k unless rounding interferes (see setHitRates).
	scale     uint64  // block_k of these values: 1 for any, 0 if not computed yet
	l2Share   float64 // hit rate of one die's super-tile
	allShare  float64 // hit rate if all tiles shared one cache
	l2Miss    float64 // follows from both shares unless an operand overflows the cache
	mallHit   float64
	mallMiss  float64
	unitBytes float64 // bytes of the device's super-tile, per scale elements of depth
}

// depth holds the values that depend on block_k alone.
type depth struct {
	bk           uint64
	asFloat      float64
	steps        uint64  // K steps of an unsplit tile
	rest         float64 // K steps after the first, at least 1
	padded       float64 // K padded to whole steps
	rounded      uint64  // block_k rounded up to 128 bytes
	whole        bool    // block_k is a multiple of 128 bytes
	instructions uint64  // matrix instructions along K
	kPadding     float64 // penalty for a partial last step
	power        bool    // block_k is a power of two
}

// stepStage holds the values that also depend on block_k.
type stepStage struct {
	tileM, tileN     uint64 // super-tile of one die that its L2 holds
	l2Hit, globalHit float64
	computeCycles    float64
	loadBytes        float64
	minLoad          float64
	fromL2, fromMALL float64 // bytes
	fromHBM          float64
	l2Cycles         float64
	mallCycles       float64
	hbmCycles        float64
	memoryCycles     float64
	bound            arch.Bound
	utilization      float64
	penalty          float64
	numIter          float64
	prologue         float64
	storePart        float64 // of the epilogue, before reduction and padding
	epilogue         float64
	conversion       float64
	single           float64
	tileLatency      float64
	factor           float64
	total            float64
}
