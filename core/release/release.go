// Package release has the version of origami, which the command, the built-in plugins, the C library and the Python
// packages share. The protocol, the plugin API and the C interface have their own. So do executors: records name
// theirs, and it changes when they measure differently.
package release

import (
	"runtime/debug"
)

// Version is a semantic version. Between releases it is the next one with "-dev". `make version` changes it here and
// in the files of other languages.
const Version = "0.2.0-dev"

// Build identifies the sources of a binary.
type Build struct {
	Version string
	// Revision is the commit, if the binary was built in a checkout. Modified means that the checkout had changes.
	Revision string
	Modified bool
}

// BuildOf is the build of a binary with this information.
func BuildOf(info *debug.BuildInfo) Build {
	b := Build{Version: Version}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String is the version with the commit behind it, such as "0.2.0-dev+58da08666a".
func (b Build) String() string {
	const digits = 10
	text := b.Version
	if b.Revision != "" {
		text += "+" + b.Revision[:min(len(b.Revision), digits)]
	}
	if b.Modified {
		text += ".modified"
	}
	return text
}
