package main

import (
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/sdk/example"
)

// provider is the example of the present revision; the tests replace this file in others.
func provider() (arch.Provider, error) { return example.Provider() }
