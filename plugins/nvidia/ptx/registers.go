package ptx

// numberRegisters numbers the registers of each class densely, in order of appearance.
func (a *assembly) numberRegisters() {
	a.number = make([]int32, len(a.registers))
	for i := range a.number {
		a.number[i] = -1
	}
	use := func(id uint32) {
		if a.number[id] < 0 {
			c := classOf(a.registers[id])
			a.number[id] = int32(a.counts[c])
			a.counts[c]++
		}
	}
	for i := range a.code {
		in := &a.code[i]
		if in.guard != 0 {
			use(in.guard - 1)
		}
		given := a.given(in)
		for j := range given {
			a.each(&given[j], use)
		}
	}
	a.kernel.Registers = map[string]int{}
	for c, class := range classes {
		a.kernel.Registers[class.name] = a.counts[c]
	}
}

// verifyRegisters reports registers that the declarations do not cover.
func (a *assembly) verifyRegisters() {
	for id, n := range a.number {
		if c := classOf(a.registers[id]); int(n) >= a.counts[c] {
			a.failf("register %d of class %s is beyond the %d declared", n, a.registers[id], a.counts[c])
		}
	}
	for i := range a.code {
		given := a.given(&a.code[i])
		for j := range given {
			a.each(&given[j], func(id uint32) {
				if a.number[id] < 0 {
					a.failf("%q uses a register without a number", a.line(i))
				}
			})
		}
	}
}
