package host

import "github.com/origami-gemm/origami/sdk/wire"

// Client returns a client for the plugin of that name, for the calls that a host does not make itself.
func (h *Host) Client(name string) *wire.Client {
	for _, f := range h.plugins() {
		if f.program != nil && f.info.Name == name {
			return wire.NewClient(name, f.program)
		}
	}
	return nil
}
