// Package configs holds the device files: one YAML per device, every number with unit, source, method and date.
// README.md describes the fields. The files are decoded by core/hw; this package only embeds them.
package configs

import "embed"

// FS holds every device file at its root.
//
//go:embed *.yaml
var FS embed.FS
