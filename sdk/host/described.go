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

// described is what a trusted plugin printed about itself, kept in Options.DescribeCache as JSON, a file per plugin.
// To be asked it must be hashed and started, which takes 30 ms for a plugin in Go and ten times that for one in
// Python, for every command that looks for plugins. While its file looks the same it is not; nothing runs because of
// that, since what runs is hashed before it starts.
type described struct {
	Path    string          `json:"path"`
	Size    int64           `json:"size"`
	Changed time.Time       `json:"changed"`
	Text    json.RawMessage `json:"describe"`
}

// describedName names the file for a plugin's binary, by the hash that is trusted.
func describedName(plugin, sha256 string) string { return plugin + "-" + sha256 + ".json" }

// recall returns what the trusted binary of that hash printed when it was asked last, if that is known and the file at
// path has not been touched since.
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
	if err != nil || !now.Mode().IsRegular() || path != d.Path || now.Size() != d.Size || !now.ModTime().Equal(d.Changed) {
		return nil, false
	}
	_, err = wire.ParseDescribe(d.Text)
	return d.Text, err == nil
}

// keep remembers what a binary printed, and forgets all that are not trusted any more. That it cannot is no failure:
// the plugin is asked again.
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
