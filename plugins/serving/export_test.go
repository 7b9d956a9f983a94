package serving

// Alone returns the plan in a server that adds nothing: the sum of the operators, each alone.
func (p *Plan) Alone() *Plan {
	other := *p
	other.server = Server{}
	return &other
}

// ServerOf returns the shipped numbers of a server.
func ServerOf(name string) (server Server) {
	for _, s := range data().servers.Servers {
		if s.Name == name {
			server = s
		}
	}
	return server
}

// LayerCount is how many layers there are.
func (p *Plan) LayerCount() int { return p.model.Layers }

// Near is what published times multiply a kernel's terms by.
func Near(name, kernel, of, layout string, m, n, k float64) float64 {
	for i := range data().operators {
		if o := &data().operators[i]; o.Operator == name && o.Kernel == kernel && o.Of == of {
			return o.near(layout, m, n, k)
		}
	}
	return 0
}
