package host

import (
	"context"

	"github.com/origami-gemm/origami/sdk/wire"
)

// Client returns a client for the plugin of that name, for the calls that a host does not make itself.
func (h *Host) Client(name string) *wire.Client {
	f, err := h.called(context.Background(), name)
	if err != nil || f == nil {
		return nil
	}
	return wire.NewClient(name, f.program)
}
