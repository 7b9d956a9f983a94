package server_test

import (
	"github.com/origami-gemm/origami/cmd/origami/internal/cli"
	"github.com/origami-gemm/origami/cmd/origami/internal/server"
)

func init() { server.Served = cli.Endpoints }
