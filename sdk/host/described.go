package host

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/sdk/wire"
)

// What a plugin prints about itself is kept in Options.DescribeCache, a file per trusted binary: to be asked it must be started,
// which takes a plugin in Go 30 ms and one in Python ten times that, for every command that looks for plugins. The binary is hashed
// all the same before an answer is taken from there, and nothing is run because of it.

// describedName names the file of a binary, by its plugin's name and its hash in hexadecimal.
func describedName(plugin, sum string) string { return plugin + "-" + sum + ".json" }

// recall returns what a binary printed when it was asked last, if that is known and whole.
func (h *Host) recall(plugin, sum string) ([]byte, bool) {
	if h.options.DescribeCache == "" {
		return nil, false
	}
	f, err := os.Open(filepath.Join(h.options.DescribeCache, describedName(plugin, sum)))
	if err != nil {
		return nil, false
	}
	defer func() { _ = f.Close() }()
	text, err := limit.ReadAll(f, f.Name(), limit.Describe, "")
	if err == nil {
		_, err = wire.ParseDescribe(text)
	}
	return text, err == nil
}

// keep remembers what a binary printed, and forgets all that are not trusted any more. That it cannot is no failure: the plugin is
// asked again.
func (h *Host) keep(plugin, sum string, text []byte, locked map[string]lockEntry) {
	dir := h.options.DescribeCache
	if dir == "" {
		return
	}
	if err := replaceFile(filepath.Join(dir, describedName(plugin, sum)), text); err != nil {
		h.options.Logger.Debug("what a plugin says about itself is not kept", "error", err)
		return
	}
	trusted := map[string]bool{}
	for name, entry := range locked {
		trusted[describedName(name, entry.SHA256)] = true
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".json") && !trusted[e.Name()] {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
