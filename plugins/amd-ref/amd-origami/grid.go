package amdorigami

import "math"

// gridMode selects the rule for the number of workgroups (the option "grid").
type gridMode uint8

const (
	dataParallel gridMode = iota
	kSplitAware
	numberOfCUs
	minResources
	energyAware
	reductionCostAware
)

// gridModes are the values of the option "grid", in the order of the constants.
var gridModes = []string{
	"data_parallel", "k_split_aware", "number_of_cus", "min_resources", "energy_aware", "reduction_cost_aware",
}

// gridInput holds the inputs of the rules. The library's rules also know a lower cap on the compute units, and the size
// of partial sums, which a ranking never gives.
type gridInput struct {
	cus   uint64 // compute units of the device
	tiles uint64 // output tiles, all batches
	steps uint64 // K steps per tile
}

// workgroups returns the number of workgroups that mode launches.
func (in *gridInput) workgroups(mode gridMode) uint64 {
	switch mode {
	case kSplitAware:
		return in.kSplitAware()
	case numberOfCUs:
		return in.cus
	case minResources:
		return min(in.cus, in.tiles)
	case energyAware:
		return in.energyAware()
	case reductionCostAware:
		return in.reductionCostAware()
	default:
		return in.tiles
	}
}

// kSplitAware distributes many tiles over fewer, equally loaded workgroups, and splits few tiles along K.
func (in *gridInput) kSplitAware() uint64 {
	tiles, cu := in.tiles, in.cus
	switch {
	case tiles > cu:
		whole := f(tiles / cu)
		for _, fraction := range [...]float64{0, 1.0 / 2, 1.0 / 8, 1.0 / 5, 1.0 / 4, 1.0 / 3} {
			if q := uint64(f(tiles)/(whole+fraction) + 0.5); q != 0 && q <= cu {
				return q
			}
		}
	case tiles < cu && tiles <= cu/4 && in.steps >= 64:
		return tiles * min(cu/tiles, in.steps/8)
	case tiles < cu:
		for _, s := range [...]uint64{16, 12, 8, 6, 4, 3, 2, 1} {
			if tiles*s <= cu && in.steps/s >= 8 {
				return tiles * s
			}
		}
	}
	return min(tiles, cu)
}

// energyAware returns the first multiple of the tiles that keeps more than three quarters of the compute units busy.
func (in *gridInput) energyAware() uint64 {
	s, cu := in.cus, in.cus
	if in.tiles > s {
		for i := uint64(1); i <= 32; i *= 2 {
			perCU := cdiv(i*in.tiles, cu)
			q := cdiv(i*in.tiles, perCU)
			if used := float32(q) / float32(cu); used > 0.75 {
				if used < 1 {
					s = q
				}
				break
			}
		}
	}
	return min(s, in.tiles)
}

// reductionCostAware minimises a cost that is linear in the K steps per workgroup and in the peers to be summed.
func (in *gridInput) reductionCostAware() uint64 {
	const (
		fixed   = 2.772 + 4.565
		split   = 3.01
		perStep = 2.2935
		perPeer = 10.22
	)
	total := in.tiles * in.steps
	best, bestCost := uint64(1), math.Inf(1)
	for g := uint64(1); g <= in.cus; g++ {
		steps := cdiv(total, g)
		peers := cdiv(in.steps, steps)
		if total%g != 0 || steps%in.steps != 0 {
			peers++
		}
		fx, isSplit := f(peers), 0.0
		if peers > 1 {
			isSplit = 1
		}
		imbalance := float64(float64(perPeer*(1/math.Abs(f(in.tiles%g)/f(g)-1/fx))) * fx)
		cost := fixed + float64(split*isSplit) + float64(perStep*f(steps)) + float64(perPeer*(fx-1)) + imbalance
		if g == 1 || cost < bestCost {
			best, bestCost = g, cost
		}
	}
	return best
}

// launch is a grid that is placed on the device.
type launch struct {
	workgroups uint64 // g
	active     uint64 // compute units that are busy in the first timestep
	timesteps  uint64
	split      uint64 // workgroups per output tile
}

// newLaunch places g workgroups for t tiles on a device with cus compute units.
func newLaunch(g, t, cus uint64) launch {
	return launch{workgroups: g, active: min(g, cus), timesteps: cdiv(max(g, t), cus), split: cdiv(g, t)}
}
