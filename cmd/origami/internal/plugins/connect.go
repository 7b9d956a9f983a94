package plugins

import (
	"context"

	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/diag"
)

// Connect reaches the plugins under the given settings.
func Connect(_ context.Context, _ config.Settings) (session.Host, error) {
	return inProcess()
}

// inProcess answers with the built-in models inside this process.
func inProcess() (session.Host, error) {
	var host session.InProcess
	for _, b := range Builtins {
		p, err := b.Provider()
		if err != nil {
			return nil, &diag.Error{Kind: diag.Plugin, Where: "plugin " + b.Name, What: err.Error(), Fix: "report it: a built-in device file is broken", Err: err}
		}
		host = append(host, p)
	}
	return host, nil
}
