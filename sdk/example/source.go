package example

import "embed"

// Source is this plugin as files, from which `origami plugin new` makes another by putting its name in the place of
// "example". What is not listed here is about the example alone.
//
//go:embed README.md model.go model_test.go conformance_test.go abstract.yaml cmd
var Source embed.FS
