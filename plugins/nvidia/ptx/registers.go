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
