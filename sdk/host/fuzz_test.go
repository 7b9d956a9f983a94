package host

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/go-hclog"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// A lock file is refused, or every entry has a hash of the right length and a valid path.
func FuzzLock(f *testing.F) {
	sum := strings.Repeat("a1", 32)
	for _, s := range []string{
		`{"plugins":{"mine":{"sha256":"` + sum + `","path":"/opt/origami-plugin-mine"}}}`,
		`{"plugins":{"own":{"sha256":"` +
			strings.ToUpper(sum) + `","path":"/opt/own"}}}`,
		``, `null`, `{}`, `{"plugins":null}`, `{"plugins":{"":{}}}`, `{"plugins":{"a":{"sha256":"abc"}}}`,
		`{"plugins":{}}{"plugins":{}}`, `{"plugin":{}}`,
		`{"plugins":{"a":{"sha256":"` + sum + `","path":"relative/a"}}}`, `{"plugins":{"../a":{"sha256":"` + sum +
			`","path":"/x/../a"}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		plugins, err := parseLock("lock", text)
		if err != nil {
			must.That(t, plugins == nil && diag.KindOf(err) == diag.Input && !strings.ContainsAny(err.Error(), "\r\n"),
				"%v, %q", plugins, err)
			return
		}
		for name, entry := range plugins {
			sum, err := hex.DecodeString(entry.SHA256)
			must.That(t, err == nil && len(sum) == 32 && entry.SHA256 == strings.ToLower(entry.SHA256) && (entry.Path == "" ||
				filepath.IsAbs(entry.Path) && pluginName(entry.Path) == name), "%q: %+v", name, entry)
		}
	})
}

// Whatever a plugin prints, the kept lines are limited in number and length, and valid text, and go-plugin's client
// gets only log lines that it can read.
func FuzzLog(f *testing.F) {
	for _, s := range []string{
		`{"@level":"warn","@message":"m","@timestamp":"x","key":1}` +
			"\n", `{"@message":1,"@level":{"a":2}}`, `{"@message":"a\nb","@level":"error"}`,
		`{"@message":"null level","@level":null,"":{}}`,
		"panic: boom\n\ngoroutine 1 [running]:\n", "\xff\xfe\n", "{", "\r\n\r\n", strings.Repeat("long ", tailLength/4),
		"a\rb\x1b[2Jc\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) < 4*tailLength { // a longer one takes milliseconds
			printed(t, text)
		}
	})
}

// Of a line that is longer than what is read of one, the beginning is kept.
func TestLongLine(t *testing.T) { printed(t, []byte(strings.Repeat("long ", lineLength/4))) }

// printed looks at what is kept of and passed on from what a plugin prints.
func printed(t *testing.T, text []byte) {
	t.Helper()
	done := make(chan struct{})
	lines, passed := io.Pipe()
	l := &launcher{passed: passed}
	go func() {
		defer close(done)
		for d := json.NewDecoder(lines); ; {
			var entry struct {
				Message   *string `json:"@message"`
				Level     string  `json:"@level"`
				Timestamp string  `json:"@timestamp"`
			}
			err := d.Decode(&entry)
			if errors.Is(err, io.EOF) {
				return
			}
			_, late := time.Parse(timestamps, entry.Timestamp)
			if err != nil || late != nil || entry.Message == nil || hclog.LevelFromString(entry.Level) == hclog.NoLevel {
				t.Errorf("go-plugin gets %+v, %v, %v", entry, err, late)
				_ = lines.Close()
				return
			}
		}
	}()
	read, written := output{pass: l.passLine}, output{pass: l.passLine}
	read.readFrom(bytes.NewReader(text))
	if n, err := written.Write(text); n != len(text) || err != nil {
		t.Fatalf("wrote %d of %d bytes, %v", n, len(text), err)
	}
	_ = passed.Close()
	<-done
	for _, l := range []*output{&read, &written} {
		lines, cause := l.last()
		must.That(t, len(lines) <= tailLines, "%d lines are kept", len(lines))
		for _, line := range append(lines, cause) {
			must.That(t, len(line) <= tailLength && utf8.ValidString(line), "%d bytes are kept: %q", len(line), line)
		}
		err := fault("p", "op", FaultDied, &process{log: l, exited: make(chan struct{})}, nil, "it died")
		must.That(t, !strings.ContainsAny(err.Error(), "\r\n"), "an error of several lines: %q", err)
	}
}
