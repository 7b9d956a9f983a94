package example

import "embed"

// Source is the source of this plugin. `origami plugin new` copies it and replaces "example" by the name of the new
// plugin. Files that are not listed here concern only the example.
//
//go:embed README.md model.go simulator.go model_test.go conformance_test.go simulator_test.go abstract.yaml cmd
var Source embed.FS

// Executor is the source of an executor in Python, which `origami plugin new --python` copies in the same way.
//
//go:embed executor.py
var Executor string
