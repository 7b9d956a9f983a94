package amdorigami

import "math/bits"

// place sets the tile and the block_k of a configuration. The methods fits and rejected need nothing else.
func (e *evaluation) place(bm, bn, bk uint64) {
	if bm != e.bm || bn != e.bn {
		e.setTile(bm, bn)
		e.workgroups = 0
	}
	e.slot = bits.TrailingZeros64(bk) % depthSlots
	if d := e.current(); d.bk != bk {
		*d = e.newDepth(bk)
	}
}

// fits reports whether one tile of A and one of B fit in local memory together.
func (e *evaluation) fits() bool { return (e.bm+e.bn)*e.current().bk*e.bytes <= e.ldsBytes }

// rejected reports whether a rule of the model drops the configuration.
func (e *evaluation) rejected() bool { return e.tileRefused || e.tileSkinny && e.current().whole }

// score computes the remaining terms of the configuration that place has set. A splitK above 1 splits each tile over
// that many workgroups. Otherwise the grid mode decides.
func (e *evaluation) score(splitK uint64) {
	workgroups := e.tiles
	switch {
	case splitK > 1:
		workgroups *= splitK
	case e.gridMode != dataParallel:
		in := gridInput{
			cus: e.cus, maxCUs: e.cus, tiles: e.tiles, steps: e.current().steps, occupancy: e.occupancy,
		}
		workgroups = in.workgroups(e.gridMode)
	}
	if workgroups != e.workgroups {
		e.setLaunch(newLaunch(workgroups, e.tiles, e.cus))
	}
	e.setStep()
}
