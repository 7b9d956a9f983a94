package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/sdk/durable"
	"github.com/origami-gemm/origami/sdk/openfile"
	"github.com/origami-gemm/origami/sdk/wire"
)

// describe runs a plugin with the argument "describe".
func (h *Host) describe(name, path string, file *binary) (text []byte, err error) {
	cmd := exec.Command(path, "describe")
	cmd.Env = hostEnv()
	read := make(chan struct{})
	logger := h.options.Logger.Named(name)
	log := &output{level: logger.GetLevel(), pass: func(level hclog.Level, entry map[string]any) {
		logger.Log(level, entry["@message"].(string))
	}}
	p, startErr := start(cmd, file, nil, log, func(r io.Reader) {
		defer close(read)
		text, err = limit.ReadAll(r, "what describe prints", limit.Describe, "report it to the plugin's author")
	})
	if startErr != nil {
		return nil, fmt.Errorf("it cannot be started: %w", startErr)
	}
	defer context.AfterFunc(h.ctx, p.abandon)()
	timeout := time.AfterFunc(h.options.StartTimeout, p.kill)
	<-read
	p.exitedWithin(time.Second) // its output is closed, but the process may not have ended
	inTime := timeout.Stop()
	p.kill()
	<-p.exited
	if large := limit.Exceeded(err); large != nil {
		return nil, large
	}
	if !inTime {
		return nil, fmt.Errorf("describe did not end within %v", h.options.StartTimeout)
	}
	if !cmd.ProcessState.Success() {
		_, last := log.last()
		return nil, fmt.Errorf("describe failed (%s): %s", p.state, last)
	}
	return text, nil
}

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
	f, _, err := openfile.Regular(filepath.Join(h.options.DescribeCache, describedName(plugin, sha256)))
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
	if err != nil || !now.Mode().IsRegular() || openfile.CheckOwner(path, now) != nil ||
		path != d.Path || now.Size() != d.Size ||
		!now.ModTime().Equal(d.Changed) {
		return nil, false
	}
	_, err = wire.ParseDescribe(d.Text)
	return d.Text, err == nil
}

// keep caches the description of a binary and removes the descriptions of binaries that are no longer trusted. An
// error is only logged: the plugin is asked again next time.
func (h *Host) keep(plugin string, file *binary, text []byte, locked map[string]lockEntry) {
	dir := h.options.DescribeCache
	if dir == "" {
		return
	}
	now, err := file.Stat()
	if err == nil {
		d := described{Path: file.Name(), Size: now.Size(), Changed: now.ModTime(), Text: text}
		if text, err = json.Marshal(d); err == nil {
			err = writeDescribed(dir, describedName(plugin, hex.EncodeToString(file.sum)), text)
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

func writeDescribed(dir, name string, text []byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return durable.Write(filepath.Join(dir, name), 0o600, text)
}

// Forget removes the cached descriptions of the plugin of that name from a cache (Options.DescribeCache).
func Forget(cache, plugin string) error {
	if cache == "" {
		return nil
	}
	entries, err := os.ReadDir(cache)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		sum, ours := strings.CutPrefix(strings.TrimSuffix(e.Name(), ".json"), plugin+"-")
		if ours && e.Name() == describedName(plugin, sum) && len(sum) == hex.EncodedLen(sha256.Size) {
			err = errors.Join(err, os.Remove(filepath.Join(cache, e.Name())))
		}
	}
	return err
}
