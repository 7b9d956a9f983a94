package host

import (
	"bufio"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"
)

// output is what a plugin prints, on its way to the log. For error texts it keeps the last lines that are not routine
// log lines.
type output struct {
	level hclog.Level                                   // below it, nothing is passed on
	pass  func(level hclog.Level, entry map[string]any) // entry has an "@message"

	mu    sync.Mutex
	lines []string
	cause string // the first line of a Go crash report; the report is longer than lines
}

const (
	tailLines  = 20
	tailLength = 512      // bytes kept of a line
	lineLength = 64 << 10 // bytes read of a line
)

func (o *output) readFrom(r io.Reader) {
	for b := bufio.NewReaderSize(r, lineLength); ; {
		line, more, err := b.ReadLine()
		if err != nil {
			return
		}
		o.add(string(line))
		for more && err == nil { // the rest of an overlong line
			_, more, err = b.ReadLine()
		}
	}
}

// Write takes the output of a plugin after the handshake, which go-plugin sends through gRPC.
func (o *output) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		o.add(strings.TrimRight(line, "\r\n"))
	}
	return len(text), nil
}

func (o *output) add(line string) {
	var entry map[string]any
	if strings.HasPrefix(line, "{") {
		_ = json.Unmarshal([]byte(line), &entry)
	}
	message, logged := entry["@message"].(string)
	level := hclog.Debug
	if !logged {
		entry, message = map[string]any{"@message": line}, line
	} else if name, _ := entry["@level"].(string); hclog.LevelFromString(name) != hclog.NoLevel {
		level = hclog.LevelFromString(name)
	} else {
		level = hclog.Info
	}
	if level >= o.level {
		o.pass(level, entry)
	}
	if logged && level < hclog.Warn {
		return
	}
	if message = strings.TrimSpace(message); message == "" {
		return
	}
	message = strings.ToValidUTF8(message[:min(len(message), tailLength)], "")
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cause == "" && (strings.HasPrefix(message, "panic: ") || strings.HasPrefix(message, "fatal error: ")) {
		o.cause = message
	}
	o.lines = append(o.lines, message)
	o.lines = o.lines[max(0, len(o.lines)-tailLines):]
}

// last returns the kept lines and the most informative one.
func (o *output) last() (lines []string, cause string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	lines, cause = slices.Clone(o.lines), o.cause
	if cause == "" && len(lines) > 0 {
		cause = lines[len(lines)-1]
	}
	return lines, cause
}
