// Package configs embeds the device files: one YAML file per device, every number with unit, source, method and date.
// README.md describes the fields. core/hw decodes the files.
package configs

import "embed"

// FS contains every device file at its root.
//
//go:embed *.yaml
var FS embed.FS
