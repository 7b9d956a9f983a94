package server_test

import (
	"github.com/origami-gemm/origami/cmd/origami/internal/served"
	"github.com/origami-gemm/origami/cmd/origami/internal/server"
)

func init() { server.Served = served.Endpoints() }
