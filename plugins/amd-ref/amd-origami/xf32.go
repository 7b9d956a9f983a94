package amdorigami

// conversionLatency is the time that splitting TF32 operands into BF16 parts adds to a K step, less the part that
// matrix instructions and loads hide (gfx950).
func (e *evaluation) conversionLatency(bk uint64) float64 {
	wm, wn := f(e.area.bm)/2, f(e.area.bn)/2
	a := wm * f(bk) * f(e.bytes) / 128 / f(e.mi.m)
	b := wn * f(bk) * f(e.bytes) / 128 / f(e.mi.n)
	reads := a + b
	products := 3 * (wm / f(e.mi.m)) * (wn / f(e.mi.n)) * f(bk/e.mi.k)
	spare := max(0, products-reads-a)
	hidden := float64(0.5*e.mi.convert*spare) + float64(0.25*e.mi.convert*(reads+a))
	return max(float64(6.5*e.mi.convert*a)-hidden, 0)
}

// xf32Factor is the hand-made factor on the total if TF32 is emulated (gfx950).
func (e *evaluation) xf32Factor(bk uint64) float64 {
	factor := 1.0
	if e.area.bm == 256 && e.area.bn == 256 && bk == 32 && (!e.transA || !e.transB) {
		m, n, k := f(e.m), f(e.n), f(e.k)
		intensity := 6 * m * n * k / ((float64(m*n) + float64(n*k) + float64(m*k)) * f(e.bytes))
		switch {
		case intensity >= 1000:
			factor = 0.4
		case !e.transA && e.transB:
			factor = 0.6
		default:
			factor = 0.8
		}
	}
	if e.k >= 16*e.m && e.k >= 16*e.n && bk >= 128 {
		factor *= 0.5
	}
	return factor
}
