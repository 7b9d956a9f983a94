package host

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/sdk/wire"
)

// inquiry is the question to a plugin what it is. It is put at most once, in the background, and ends with the host.
// For a plugin outside of this program, the binary is hashed and started to describe itself, unless its description is
// cached. That takes time, so a plugin is only asked when its answer may matter.
type inquiry struct {
	info PluginInfo // what is known before
	put  sync.Once
	done chan struct{} // closed when the answer is there
	got  *found        // the answer

	mu   sync.Mutex
	says *found // what is known now
}

func newInquiry(info PluginInfo) *inquiry {
	info.State = Unasked
	return &inquiry{info: info, done: make(chan struct{}), says: &found{info: info}}
}

// answered is the inquiry of a plugin that need not be asked.
func answered(f *found) *inquiry {
	q := &inquiry{info: f.info, done: make(chan struct{}), got: f, says: f}
	q.put.Do(func() { close(q.done) })
	return q
}

// known returns a copy of what is known.
func (q *inquiry) known() *found {
	q.mu.Lock()
	defer q.mu.Unlock()
	f := *q.says
	return &f
}

func (q *inquiry) learn(f *found) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.says = f
}

// start puts the question.
func (q *inquiry) start(h *Host) {
	q.put.Do(func() {
		go func() {
			defer close(q.done)
			q.got = &found{info: q.info}
			q.got.examine(h)
		}()
	})
}

// end waits for the end of a question. It is not put any more.
func (q *inquiry) end() *found {
	q.put.Do(func() {
		q.got = &found{info: q.info}
		q.got.fail("%v", errClosed)
		close(q.done)
	})
	<-q.done
	return q.got
}

// noticeTime is how long the user waits for a plugin without being told.
const noticeTime = time.Second

// askAll asks all plugins at once. Those whose path the user named, and those called name, are what the user means.
// The others are waited for up to Options.DescribeTimeout only.
func (h *Host) askAll(ctx context.Context, name string) error {
	all := h.all()
	var meant []*inquiry
	for _, q := range all {
		q.start(h)
		if q.info.Named || name != "" && strings.EqualFold(q.info.Name, name) {
			meant = append(meant, q)
		}
	}
	limited, cancel := context.WithTimeout(ctx, h.options.DescribeTimeout) // from now on, for all
	defer cancel()
	if err := h.ask(ctx, meant, nil); err != nil {
		return err
	}
	return h.ask(ctx, all, limited.Done())
}

// ask asks plugins at once and waits until they have answered, or until over is closed. A plugin that is late by then
// is an error until it is waited for without a limit. It goes on with its answer, which may still be cached.
func (h *Host) ask(ctx context.Context, which []*inquiry, over <-chan struct{}) error {
	for _, q := range which {
		q.start(h)
	}
	if over == nil {
		defer time.AfterFunc(noticeTime, func() { h.noticeWait(which) }).Stop()
	}
	for _, q := range which {
		if over != nil && q.known().info.Code == diag.CodeSlowPlugin {
			continue // it has had its time
		}
		select {
		case <-q.done:
			q.learn(q.got)
			continue
		default:
		}
		select {
		case <-q.done:
			q.learn(q.got)
		case <-ctx.Done():
			return ctx.Err()
		case <-over:
			if ctx.Err() != nil {
				return ctx.Err()
			}
			h.leaveOut(q)
		}
	}
	if h.ctx.Err() != nil {
		return errClosed
	}
	return ctx.Err()
}

// leaveOut makes a plugin that is late an error.
func (h *Host) leaveOut(q *inquiry) {
	late := &found{info: q.info}
	late.fail("describe did not end within %v", h.options.DescribeTimeout)
	late.info.Code = diag.CodeSlowPlugin
	q.learn(late)
	h.warn(fmt.Sprintf("plugin %s is left out: %s", q.info.Name, late.info.Reason))
}

// noticeWait tells the user which plugins are awaited.
func (h *Host) noticeWait(which []*inquiry) {
	for _, q := range which {
		select {
		case <-q.done:
		default:
			h.warn(fmt.Sprintf("waiting for plugin %s to describe itself, for up to %v", q.info.Name,
				h.options.StartTimeout))
		}
	}
}

func (f *found) skip(format string, args ...any) {
	f.info.State, f.info.Reason = Skipped, fmt.Sprintf(format, args...)
}

func (f *found) fail(format string, args ...any) {
	f.info.State, f.info.Reason = Error, fmt.Sprintf(format, args...)
}

// examine asks a plugin outside of this program. It runs nothing before it has checked the hash, and it hashes nothing
// that the lock file has no entry for.
func (f *found) examine(h *Host) {
	path, byName := f.info.Path, f.info.Named && h.options.TrustNamed // without the lock file
	var locked map[string]lockEntry
	var lockErr error
	if !byName {
		locked, lockErr = h.lock()
	}
	want, listed := locked[f.info.Name]
	if text, known := h.recall(f.info.Name, path, want.SHA256); known {
		f.info.SHA256 = want.SHA256
		if err := h.guard(path); err != nil {
			f.skip("%v", err)
			return
		}
		f.accept(h, text)
		return
	}
	file, err := openBinary(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && want.Path == path && !f.info.Named:
		f.skip("its file is missing; trust it at its new path, or distrust it")
		f.info.Code = diag.CodeMissingPlugin
		return
	case isForOthers(err):
		f.skip("%v", err)
		return
	case err != nil:
		f.fail("it cannot be read: %v", err)
		return
	}
	defer func() { _ = file.Close() }()
	switch {
	case byName:
	case lockErr != nil:
		f.skip("the lock file cannot be used: %v", lockErr)
		return
	case !listed:
		f.skip("it is not in the lock file %q", h.options.LockFile)
		f.info.Code = diag.CodeUntrustedPlugin
		return
	}
	if err := file.hash(h.ctx); err != nil {
		f.fail("it cannot be read: %v", err)
		return
	}
	f.info.SHA256 = hex.EncodeToString(file.sum)
	if !byName && want.SHA256 != f.info.SHA256 {
		f.skip("its SHA-256 is not the one in the lock file %q; trust it again if you changed the plugin",
			h.options.LockFile)
		f.info.Code = diag.CodeUntrustedPlugin
		return
	}
	if err := h.guard(path); err != nil {
		f.skip("%v", err)
		return
	}
	text, err := h.describe(f.info.Name, path, file)
	if err != nil {
		f.fail("%v", err)
		return
	}
	if failing := f.accept(h, text); f.info.State == OK && !byName && !failing {
		h.keep(f.info.Name, file, text, locked)
	}
}

// accept checks the description that a plugin printed and takes it over. failing: the plugin says that it cannot work.
func (f *found) accept(h *Host, text []byte) (failing bool) {
	d, err := wire.ParseDescribe(text)
	f.info.Version, f.info.Protocols = d.Info.Version, d.Protocols
	if d.Info.Name == "" && err != nil {
		f.fail("describe printed nonsense: %v", err)
		return false
	}
	if !slices.Contains(d.Protocols, wire.ProtocolVersion) {
		f.skip("it speaks protocol %v, this origami speaks %d; rebuild it", d.Protocols, wire.ProtocolVersion)
		return false
	}
	if err != nil {
		f.fail("describe printed nonsense: %v", err)
		return false
	}
	if d.Executor == nil && (d.Manifest == nil || len(d.Manifest.Archs) == 0) {
		f.fail("it provides no architecture and no executor")
		return false
	}
	f.info.State, f.info.Executor = OK, d.Executor != nil
	if d.Manifest != nil {
		f.manifest = *d.Manifest
		f.manifest.Name = f.info.Name // the file's name is what the user trusts
	}
	sum, _ := hex.DecodeString(f.info.SHA256) // readLock has checked it
	f.program = &program{name: f.info.Name, path: f.info.Path, checksum: sum, host: h}
	return d.Info.Failing != ""
}
