package host_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/sdk/host"
)

// A sweep removes only what ended hosts have left.
func TestSweep(t *testing.T) {
	tmp := shortDir(t)
	t.Setenv("TMPDIR", tmp)
	living := newHost(t, host.Options{Builtins: []host.Builtin{builtin("slow")}})
	opened := make(chan error)
	go func() {
		_, err := living.Open(t.Context(), arch.OpenRequest{Arch: "slow"})
		opened <- err
	}()
	var keep []string
	must.Need(t, eventually(func() bool { keep = socketFolders(tmp); return len(keep) > 0 }),
		"a host has no folder when it starts a plugin")
	inUse := keep[0]
	write := func(path, text string) {
		path = filepath.Join(tmp, path)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	for path, text := range map[string]string{"origami-run7/file": "", "origami-run8/plugin-dir1/file": "text",
		"origami-runs/plugin-dir1/plugin1": "", "origami-run/plugin-dir1/plugin1": ""} {
		write(path, text)
		keep = append(keep, filepath.Join(tmp, strings.SplitN(path, "/", 2)[0]))
	}
	write("origami-run10/plugin-dir1/plugin1", "")
	must.Do(t, syscall.Mkfifo(filepath.Join(tmp, "origami-run11"), 0o600))
	keep = append(keep, filepath.Join(tmp, "origami-run11"))
	// The named pipe must not block it.
	sweeper := newHost(t, host.Options{Self: "/nonexistent", Builtins: []host.Builtin{builtin("good")}})
	if _, err := sweeper.Open(t.Context(), arch.OpenRequest{Arch: "good"}); err == nil {
		t.Error("a missing program starts")
	}
	slices.Sort(keep)
	left := socketFolders(tmp)
	must.That(t, reflect.DeepEqual(left, keep), "left %v, want %v", left, keep)
	if err := <-opened; err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(inUse); err == nil {
		t.Error("a host keeps the folder that it needed for a start")
	}
}

// A hundred concurrent selections while the plugin is killed again and again: each is right or returns the fault.
func TestSelectionsOverKills(t *testing.T) {
	leavesNothing(t)
	b := newBench(t, forger, host.Options{})
	defer b.close(t)
	must.Do(t, b.open(t.Context()))
	want := must.Get(rank(t.Context(), b.architecture))(t)
	const selections, kills = 100, 15
	stop := make(chan struct{})
	var right, faults sync.Map
	var wg sync.WaitGroup
	for i := range selections {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					if n > 0 {
						return
					}
				default:
				}
				got, err := rank(t.Context(), b.architecture)
				var e *host.PluginError
				switch {
				case err == nil && reflect.DeepEqual(got, want):
					right.Store(i, true)
				case err == nil:
					t.Errorf("got %+v", got)
				case errors.As(err, &e) && diag.KindOf(err) == diag.Plugin && (e.Fault == host.FaultDied ||
					e.Fault == host.FaultStart):
					faults.Store(e.Fault, err)
				default:
					t.Errorf("got %v", err)
				}
			}
		})
	}
	killed := 0
	for range kills {
		time.Sleep(time.Duration(20+rand.IntN(300)) * time.Millisecond)
		started := b.lines(startsFile)
		if pid, _ := strconv.Atoi(started[len(started)-1]); lives(started[len(started)-1]) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			killed++
		}
	}
	close(stop)
	wg.Wait()
	must.That(t, killed >= kills/2, "killed %d times", killed)
	n := 0
	right.Range(func(any, any) bool { n++; return true })
	faults.Range(func(fault, err any) bool { t.Log(fault, err); return true })
	t.Logf("%d kills, %d starts; %d of %d got through", killed, len(b.lines(startsFile)), n, selections)
	must.That(t, n != 0, "none got through")
	if got, err := rank(t.Context(), b.architecture); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("afterwards: %v", err)
	}
}

// A call while the host is being closed returns the right answer, or the error that the host is closed.
func TestCloseWhileCallsRun(t *testing.T) {
	leavesNothing(t)
	for range 5 {
		b := newBench(t, forger, host.Options{})
		must.Do(t, b.open(t.Context()))
		request := selector.Request{Problems: make([]gemm.Problem, 64), Top: 3}
		for i := range request.Problems {
			request.Problems[i] = problem
		}
		want := must.Get(selector.Rank(t.Context(), b.architecture, request))(t)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				for {
					got, err := selector.Rank(t.Context(), b.architecture, request)
					if err != nil {
						must.That(t, strings.Contains(err.Error(), "the plugin host is closed"), "got %v", err)
						return
					}
					must.That(t, reflect.DeepEqual(got, want), "got %+v", got)
				}
			})
		}
		time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
		begin := time.Now()
		b.close(t)
		wg.Wait()
		took := time.Since(begin)
		must.That(t, took <= 10*time.Second, "it took %v", took)
	}
}
