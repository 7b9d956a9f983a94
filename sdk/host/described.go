package host

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/sdk/wire"
)

// described is the description that a trusted plugin printed. Options.DescribeCache keeps it as JSON, one file per
// plugin. Asking a plugin means hashing and starting it, in every command that looks for plugins. That takes 30 ms in
// Go and ten times as long in Python. While the size and time of the file stay the same, the plugin is not asked
// again. This does not weaken trust: a binary is hashed before it runs.
type described struct {
	Path    string          `json:"path"`
	Size    int64           `json:"size"`
	Changed time.Time       `json:"changed"`
	Text    json.RawMessage `json:"describe"`
}

// describedName is the name of the cache file of a plugin's binary with the trusted hash.
func describedName(plugin, sha256 string) string { return plugin + "-" + sha256 + ".json" }

// recall returns the cached description of the trusted binary with this hash, if there is one and the file at path
// has not changed since.
func (h *Host) recall(plugin, path, sha256 string) ([]byte, bool) {
	if h.options.DescribeCache == "" || sha256 == "" {
		return nil, false
	}
	f, err := os.Open(filepath.Join(h.options.DescribeCache, describedName(plugin, sha256)))
	if err != nil {
		return nil, false
	}
	defer func() { _ = f.Close() }()
	var d described
	text, err := limit.ReadAll(f, f.Name(), 2*limit.Describe, "")
	if err != nil || json.Unmarshal(text, &d) != nil {
		return nil, false
	}
	now, err := os.Stat(path)
	if err != nil || !now.Mode().IsRegular() || path != d.Path || now.Size() != d.Size ||
		!now.ModTime().Equal(d.Changed) {
		return nil, false
	}
	_, err = wire.ParseDescribe(d.Text)
	return d.Text, err == nil
}

// keep caches the description of a binary and removes those of binaries that are not trusted any more. An error is
// only logged: the plugin is asked again next time.
func (h *Host) keep(plugin string, file *binary, text []byte, locked map[string]lockEntry) {
	dir := h.options.DescribeCache
	if dir == "" {
		return
	}
	now, err := file.Stat()
	if err == nil {
		d := described{Path: file.Name(), Size: now.Size(), Changed: now.ModTime(), Text: text}
		if text, err = json.Marshal(d); err == nil {
			err = replaceFile(filepath.Join(dir, describedName(plugin, hex.EncodeToString(file.sum))), text)
		}
	}
	if err != nil {
		h.options.Logger.Debug("the description of a plugin is not cached", "error", err)
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
