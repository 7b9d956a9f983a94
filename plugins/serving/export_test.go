package serving

// Alone returns the plan in a server that adds nothing: the sum of the operators, each alone.
func (p *Plan) Alone() *Plan {
	other := *p
	other.server = Server{}
	return &other
}

// ServerOf returns the shipped numbers of a server, and the spread of all.
func ServerOf(name string) (Server, float64) {
	for _, s := range data().servers.Servers {
		if s.Name == name {
			return s, data().servers.Spread
		}
	}
	return Server{}, 0
}

// SetBlocks says whether weights of fp8 have scales per block.
func (p *Plan) SetBlocks(blocks bool) { p.blocks = blocks }

// LayerCount is how many layers there are.
func (p *Plan) LayerCount() int { return p.model.Layers }
