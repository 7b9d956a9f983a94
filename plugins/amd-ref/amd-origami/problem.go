package amdorigami

import "github.com/origami-gemm/origami/core/arch"

const (
	// Name is the model's name in requests and descriptions.
	Name = "amd-origami"
	// Family is the kernel family that it predicts.
	Family = "triton"
)

// The empirical numbers of the model. The table constants describes each; docs/model-amd-origami.md gives the
// equations that use them.
const (
	prologueFactor      = 1.5
	epilogueFactor      = 2
	setupLatency        = 1
	stepOverhead        = 500
	kPaddingPenalty     = 50000
	reductionLatency    = 10000
	reductionRate       = 64
	emptyHitRate        = 0.5
	overflowHitRate     = 0.1
	globalCapacityScale = 1024
	roundBits           = 1024
	smallTilePenalty    = 10
	skinnyRatio         = 5
	minUtilization      = 1e-9
	occupancyBase       = 0.95
	maxOccupancy        = 32
)

// occupancyDiscount[n] is 0.95^n as C's pow rounds it, to the nearest double. Go's math.Pow and repeated multiplication
// round some of the values differently. A compute unit holds at most 32 wavefronts, so the table ends there.
var occupancyDiscount = [maxOccupancy + 1]float64{
	1, 0.95, 0.9025, 0.8573749999999999,
	0.8145062499999999, 0.7737809374999998, 0.7350918906249998, 0.6983372960937497,
	0.6634204312890623, 0.6302494097246091, 0.5987369392383787, 0.5688000922764597,
	0.5403600876626367, 0.5133420832795048, 0.48767497911552954, 0.46329123015975304,
	0.44012666865176536, 0.4181203352191771, 0.3972143184582182, 0.37735360253530725,
	0.3584859224085419, 0.3405616262881148, 0.323533544973709, 0.3073568677250236,
	0.2919890243387724, 0.27738957312183377, 0.26352009446574204, 0.2503440897424549,
	0.23782688525533216, 0.22593554099256555, 0.21463876394293727, 0.2039068257457904,
	0.19371148445850087,
}

// machine is a device in the form that the equations use.
type machine struct {
	cus, xcds       uint64
	ldsBytes        uint64
	memory          []arch.Level
	l2, mall, hbm   arch.Level
	l2Bytes         uint64  // capacity of l2, which is that of one die
	hbmLatency      float64 // cycles
	assumedWGM      uint64  // WGM that the score of an unbatched problem assumes
	emulatesXF32    bool    // TF32 runs as three BF16 products, with conversions
	parallelMI      uint64
	gridMode        gridMode
	occupancy       uint64
	februaryMapping bool
	ordered         uint64 // workgroups that the mapping is chosen for; 0: cus
}

// instruction is a matrix instruction. latency is its cost in cycles with all matrix cores of a compute unit busy.
type instruction struct{ m, n, k, latency uint64 }

// problem is a GEMM in the form that the equations use, with every value that does not depend on the tile.
type problem struct {
	*machine
	m, n, k, batch uint64
	// transA and transB are the BLAS letters of column-major storage: T for A and N for B are K-contiguous.
	transA, transB bool
	bits, bytes    uint64  // size of an element of A or B
	outBytes       float64 // size of an element of C
	mi             instruction
	// convert is the latency of a BF16 instruction of the same shape if TF32 is emulated, else zero.
	convert float64
	wgm     uint64

	volume       float64 // M·N·K
	block        uint64  // 128 bytes, in elements
	wholeK       bool    // K is a multiple of block
	longM, longN bool    // skinny in the direction that the hint rule checks
	refused      bool    // a rule that does not depend on the tile rejects the problem
}

// derive computes the fields that follow from the others.
func (p *problem) derive() {
	p.bytes = p.bits / 8
	p.volume = f(p.m * p.n * p.k)
	p.block = roundBits / p.bits
	p.wholeK = p.k%p.block == 0
	p.longM = p.transA && p.m/p.n > skinnyRatio
	p.longN = !p.transB && p.n/p.m > skinnyRatio
	p.refused = p.mi.m == 1 && p.mi.n == 1 && p.mi.k == 64 && p.m > 2
}

// round128 rounds a number of elements along one dimension of a tile up to 128 bytes.
func (p *problem) round128(x uint64) uint64 { return (x + p.block - 1) &^ (p.block - 1) }
