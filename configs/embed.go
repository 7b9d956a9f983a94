// Package configs holds the device files: one YAML per device, every number with its unit, source, method and date.
package configs

import "embed"

// FS holds the device files at its root.
//
//go:embed *.yaml
var FS embed.FS
